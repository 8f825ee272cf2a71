"""Rules of Megatron's layouts: which layers each stage holds, by layout strings, uneven edges and even splits."""

from __future__ import annotations

from pipeplan.extensions.review.facts import ReviewFacts
from pipeplan.extensions.review.rule import RuleRow

_ARGUMENTS = "Megatron-LM megatron/training/arguments.py validate_args"
_CONFIG = "Megatron-LM megatron/core/transformer/transformer_config.py TransformerConfig.__post_init__"
_LAYOUT = "Megatron-LM megatron/core/transformer/pipeline_parallel_layer_layout.py PipelineParallelLayerLayout"
_BLOCK = "Megatron-LM megatron/core/transformer/transformer_block.py get_num_layers_to_build"
_MINDSPEED = "MindSpeed-LLM NumLayerListFeature"


def _plain(c: ReviewFacts) -> bool:
    """Return True for an even split: no set edges or layers of each stage, no hybrid pattern, no layout."""
    listed = c.uneven or c.get("layer_list", None) or c.get("hybrid_pattern", None) or _heterogeneous(c)
    return not listed and c.layout is None


def _laid_out(c: ReviewFacts) -> bool:
    """Return True if there is a layout, which a single rank does not need."""
    return bool(c.get("layout", None) if c.get("pp", None) == 1 else c.layout)


def _accounted(c: ReviewFacts) -> bool:
    return bool(c.get("account_embedding", False) or c.get("account_loss", False))


def _heterogeneous(c: ReviewFacts) -> bool:
    return "(hybrid)" in str(c.get("model_name", "")).lower()


def _flat(c: ReviewFacts) -> str:
    return "".join(c.letters)


def _mtp_chunks(c: ReviewFacts) -> set[int]:
    return {stage // c.pp for stage, letters in enumerate(c.letters) if "m" in letters}


def _splits_mtp(c: ReviewFacts) -> bool:
    return sum("m" in letters for letters in c.letters) > 1


def _hybrid_segments(c: ReviewFacts) -> int:
    """Return the number of pipeline segments of a hybrid pattern: ``|`` separates them, ``/`` starts the MTP layers."""
    return str(c.hybrid_pattern or "").split("/")[0].count("|") + 1


def _sets_chunks(c: ReviewFacts) -> bool:
    """Return True if the argument for the number of chunks is set; logs also have the number that follows from others."""
    key = c.place_of(("vpp",)).key.replace("-", "_")
    return bool(c.get("vpp", None)) and key.endswith("num_virtual_stages_per_pipeline_rank")


# A table, read by columns: formatted, it would have a line for every argument.
# fmt: off
RULES = (
    RuleRow(
        id="layers-per-rank", group="layouts", trainer="megatron-core",
        when=lambda c: c.pp > 1 and not c.get("account_embedding", False) and not c.get("account_loss", False)
        and c.layers % c.pp and _plain(c),
        message="{c.layers} layers do not divide by pp {c.pp}, and neither a layout nor uneven edges are set",
        remedy="set the layers of the first and last stage, or a pipeline-model-parallel-layout",
        settings=("pp", "layers"), repairs=("balanced-edges", "balanced-layout"),
        source=f"{_ARGUMENTS}; {_BLOCK}; Megatron-Bridge #5551, ms-swift #5737",
    ),
    RuleRow(
        id="layer-list-stages", group="layouts", trainer="mindspeed",
        when=lambda c: c.layer_list and not c.get("noop_layers", None) and len(c.layer_list) != c.pp,
        message="num-layer-list does not have one number of layers for each of the pp {c.pp} stages",
        remedy="write a number of layers for each of {c.pp} stages",
        settings=("layer_list", "pp"), source=f"{_MINDSPEED}.validate_args",
    ),
    RuleRow(
        id="layer-list-chunks", group="layouts", trainer="mindspeed",
        when=lambda c: c.layer_list and c.layers_per_virtual_stage,
        message="num-layer-list does not go with num-layers-per-virtual-pipeline-stage",
        remedy="drop one of them",
        settings=("layer_list", "layers_per_virtual_stage"), source=f"{_MINDSPEED}.validate_args",
    ),
    RuleRow(
        id="accounted-layers-per-rank", group="layouts", trainer="megatron-core",
        when=lambda c: c.pp > 1 and _accounted(c) and c.counted_layers % c.pp and _plain(c),
        message="{c.layers} layers with the accounted embedding and loss make {c.counted_layers}, which do not divide by pp "
        "{c.pp}",
        remedy="account for both, one or none of them so that the sum divides by {c.pp}, or set a layout",
        settings=("account_embedding", "account_loss", "pp", "layers"),
        repairs=("no-accounting", "both-accounting", "balanced-edges", "balanced-layout"),
        source=f"{_CONFIG}; NeMo #12828",
    ),
    RuleRow(
        id="layers-per-chunk", group="layouts", trainer="megatron-core",
        when=lambda c: c.pp > 1 and (c.vpp or 1) > 1 and c.counted_layers % c.pp == 0
        and (c.counted_layers // c.pp) % c.vpp and _plain(c),
        message="each rank holds {c.counted_layers} / {c.pp} layers, which do not divide by {c.vpp} virtual stages",
        remedy="use a number of virtual stages that divides the layers of a rank, or a pipeline-model-parallel-layout",
        settings=("vpp", "layers", "pp"), repairs=("nearest-chunks", "no-chunks", "balanced-layout"),
        source=f"{_BLOCK}; {_CONFIG}; Megatron-Bridge #4604",
    ),
    RuleRow(
        id="layers-per-virtual-stage", group="layouts", trainer="megatron-lm",
        when=lambda c: c.pp > 1 and c.layers_per_virtual_stage and c.counted_layers % c.pp == 0
        and (c.counted_layers // c.pp) % c.layers_per_virtual_stage,
        message="each rank holds {c.counted_layers} / {c.pp} layers, which do not divide into virtual stages of "
        "{c.layers_per_virtual_stage}",
        remedy="use a number of layers per virtual stage that divides the layers of a rank",
        settings=("layers_per_virtual_stage", "pp", "layers"), repairs=("fit-virtual-layers",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="accounted-first-chunk", group="layouts", trainer="megatron-core", severity="advice", question="right",
        when=lambda c: c.pp > 1 and _accounted(c) and c.counted_layers == c.pp * c.chunks and _plain(c),
        message="a chunk has one layer, so the accounted embedding or loss leaves a stage without layers",
        remedy="use fewer virtual stages",
        settings=("vpp", "account_embedding", "account_loss"), repairs=("nearest-chunks",), source=_BLOCK,
    ),
    RuleRow(
        id="edges-with-accounting", group="layouts", trainer="megatron-core",
        when=lambda c: c.uneven and _accounted(c),
        message="layers of the first or last stage are set together with account-for-embedding or account-for-loss",
        remedy="drop account-for-embedding-in-pipeline-split and account-for-loss-in-pipeline-split",
        settings=("account_embedding", "account_loss", "first_stage_layers", "last_stage_layers"),
        repairs=("no-accounting",), source=_CONFIG,
    ),
    RuleRow(
        id="edges-middle-layers", group="layouts", trainer="megatron-core",
        when=lambda c: c.uneven and c.pp > 1 and c.layout is None and c.middle_ranks > 0
        and (c.middle_layers % c.middle_ranks or c.middle_layers <= 0),
        message="{c.middle_layers} layers are left for {c.middle_ranks} middle stages, which they do not divide by",
        remedy="set the layers of the first and last stage so that the rest divides by the middle stages",
        settings=("first_stage_layers", "last_stage_layers", "pp", "layers"),
        repairs=("balanced-edges", "balanced-layout"), source=f"{_CONFIG}; Megatron-Bridge #5581",
    ),
    RuleRow(
        id="edges-without-middle", group="layouts", trainer="megatron-core",
        when=lambda c: c.uneven and c.pp > 1 and c.layout is None and c.middle_ranks == 0 and c.middle_layers != 0,
        message="the first and last stage hold all ranks, but {c.middle_layers} of the {c.layers} layers are left over",
        remedy="make the layers of the two stages add up to {c.layers}",
        settings=("first_stage_layers", "last_stage_layers", "layers"), repairs=("balanced-edges",), source=_CONFIG,
    ),
    RuleRow(
        id="edges-per-chunk", group="layouts", trainer="megatron-core",
        when=lambda c: c.uneven and c.layout is None and (c.vpp or 1) > 1
        and any((c.get(edge, 0) or 0) % c.vpp for edge in ("first_stage_layers", "last_stage_layers")),
        message="the layers of the first or last stage do not divide by {c.vpp} virtual stages",
        remedy="use layers that are a multiple of {c.vpp}, or a pipeline-model-parallel-layout",
        settings=("first_stage_layers", "last_stage_layers", "vpp"),
        repairs=("balanced-edges", "no-chunks", "balanced-layout"),
        source=_CONFIG,
    ),
    RuleRow(
        id="middle-per-chunk", group="layouts", trainer="megatron-core",
        when=lambda c: c.uneven and c.layout is None and (c.vpp or 1) > 1 and c.middle_ranks > 0
        and c.middle_layers % c.middle_ranks == 0 and (c.middle_layers // c.middle_ranks) % c.vpp,
        message="each middle rank holds {c.middle_layers} / {c.middle_ranks} layers, which do not divide by {c.vpp} virtual "
        "stages",
        remedy="use other edges or virtual stages, or a pipeline-model-parallel-layout",
        settings=("vpp", "first_stage_layers", "last_stage_layers"),
        repairs=("balanced-edges", "no-chunks", "balanced-layout"), source=_CONFIG,
    ),
    RuleRow(
        id="edges-need-virtual-stages", group="layouts", trainer="megatron-lm",
        when=lambda c: c.uneven and c.layers_per_virtual_stage,
        message="num-layers-per-virtual-pipeline-stage does not go with uneven first or last stages",
        remedy="use num-virtual-stages-per-pipeline-rank in its place",
        settings=("layers_per_virtual_stage", "first_stage_layers", "last_stage_layers"),
        repairs=("no-virtual-layers",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="edges-on-one-rank", group="layouts", trainer="megatron-core", question="right",
        when=lambda c: c.uneven and c.pp == 1 and any((c.get(edge, None) or c.layers) != c.layers
                                                      for edge in ("first_stage_layers", "last_stage_layers")),
        message="at pp 1 the set layers of the first or last stage replace the {c.layers} layers of the model",
        remedy="drop the layers of the first and last stage at pp 1",
        settings=("last_stage_layers", "first_stage_layers", "pp"), repairs=("no-edges",),
        source="Megatron-LM #1778",
    ),
    RuleRow(
        id="layout-with-others", group="layouts", trainer="megatron-core",
        when=lambda c: (c.uneven or _accounted(c)) and c.layout,
        message="a layout is set together with uneven edges or accounted embedding and loss",
        remedy="drop the other settings of the split, which the layout replaces",
        settings=("first_stage_layers", "last_stage_layers", "account_embedding", "account_loss", "layout"),
        repairs=("layout-alone",), source=_CONFIG,
    ),
    RuleRow(
        id="two-ways-of-chunks", group="layouts", trainer="megatron-lm",
        when=lambda c: sum((_sets_chunks(c), bool(c.get("layout", None)), bool(c.layers_per_virtual_stage))) > 1,
        message="a layout, num-virtual-stages-per-pipeline-rank and num-layers-per-virtual-pipeline-stage exclude each "
        "other",
        remedy="keep one of them; the layout implies the virtual stages",
        settings=("vpp", "layers_per_virtual_stage", "layout"), repairs=("layout-alone",), source=_ARGUMENTS,
    ),
    RuleRow(
        id="layout-release", group="layouts", trainer="megatron-core", releases="<0.13",
        when=_laid_out,
        message="pipeline-model-parallel-layout needs Megatron-core 0.13",
        remedy="use a newer release, or the layers of the first and last stage",
        settings=("layout",), repairs=("balanced-edges",), source="Megatron-LM 0.12 megatron/training/arguments.py",
    ),
    RuleRow(
        id="layout-letters", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and c.layout_fault,
        message="{c.layout_fault}",
        remedy="write a part of E, t, m and L for each stage, such as Et*3|(t*4|)*6t*3L",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.parse_str_to_list",
    ),
    RuleRow(
        id="layout-stages", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and len(c.letters) % c.pp,
        message="the layout has {c.layout_stages} stages, which do not divide by pp {c.pp}",
        remedy="write the layout for pp {c.pp}: it is stale",
        settings=("layout", "pp"), repairs=("balanced-layout",),
        source=f"{_LAYOUT}.__init__; Megatron-Bridge #5443, #5708",
    ),
    RuleRow(
        id="layout-chunks", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and (c.vpp or 0) > 1 and len(c.letters) % c.pp == 0 and len(c.letters) // c.pp != c.vpp,
        message="the layout has {c.layout_stages} stages, not pp {c.pp} x {c.vpp} virtual stages",
        remedy="write the layout for these degrees, or drop the virtual stages: the layout implies them",
        settings=("layout", "vpp", "pp"), repairs=("balanced-layout", "chunks-of-layout"),
        source=f"{_CONFIG}; Megatron-Bridge #5578, #5640",
    ),
    RuleRow(
        id="layout-implies-chunks", group="layouts", trainer="megatron-core", severity="warning", question="right",
        when=lambda c: _laid_out(c) and (c.vpp or 1) == 1 and c.has("vpp") and not c.settings["vpp"].assumed
        and len(c.letters) > c.pp and len(c.letters) % c.pp == 0,
        message="the layout has {c.layout_stages} stages on pp {c.pp}: it is stale, or implies virtual stages that are not "
        "set",
        remedy="write the layout for pp {c.pp}, or set the virtual stages",
        settings=("layout", "vpp", "pp"), repairs=("balanced-layout", "chunks-of-layout"),
        source=f"{_CONFIG}; Megatron-Bridge #5640",
    ),
    RuleRow(
        id="layout-layers", group="layouts", trainer="megatron-core", question="right",
        when=lambda c: _laid_out(c) and c.layout_layers != c.layers,
        message="the layout has {c.layout_layers} transformer layers, and the model {c.layers}",
        remedy="write the layout for {c.layers} layers: it is stale",
        settings=("layout", "layers"), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-mtp", group="layouts", trainer="megatron-core", question="right",
        when=lambda c: _laid_out(c) and c.layout_mtp != (c.mtp_layers or 0),
        message="the layout has {c.layout_mtp} MTP layers, and the model {c.mtp}",
        remedy="write as many m as the model has MTP layers, or change mtp-num-layers",
        settings=("layout", "mtp_layers"), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-embedding", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and (_flat(c)[:1] != "E" or _flat(c).count("E") != 1),
        message="the layout must begin with its one embedding, E",
        remedy="begin the first stage with E",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-loss", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and (_flat(c)[-1:] != "L" or _flat(c).count("L") != 1),
        message="the layout must end with its one loss, L",
        remedy="end the last stage with L",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-mtp-before-layers", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and "m" in _flat(c) and "t" in _flat(c)[_flat(c).index("m"):],
        message="the layout has transformer layers behind MTP layers",
        remedy="put all m behind the last t",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-mtp-together", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and _splits_mtp(c),
        message="the layout puts MTP layers on several stages",
        remedy="put all m on one stage",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="layout-mtp-chunk", group="layouts", trainer="megatron-core",
        when=lambda c: _laid_out(c) and len(c.letters) % c.pp == 0 and _mtp_chunks(c) - {len(c.letters) // c.pp - 1},
        message="the layout puts MTP layers on a chunk that is not a rank's last",
        remedy="put all m on a stage of the last chunk",
        settings=("layout",), repairs=("balanced-layout",), source=f"{_LAYOUT}.validate_layer_layout",
    ),
    RuleRow(
        id="mtp-alone-release", group="layouts", trainer="megatron-core", releases="<0.16",
        when=lambda c: _laid_out(c) and c.layout_mtp and "m" not in c.letters[-1],
        message="MTP layers on a stage apart from the loss need Megatron-core 0.16",
        remedy="put the m before the L",
        settings=("layout",), repairs=("balanced-layout",), source="Megatron-LM 0.15 multi_token_prediction.py",
    ),
    RuleRow(
        id="swift-mtp-alone", group="layouts", trainer="ms-swift",
        when=lambda c: _laid_out(c) and any("m" in stage and "t" not in stage for stage in c.letters),
        message="a stage of MTP layers without a transformer layer fails in ms-swift",
        remedy="put a transformer layer on the stage of the MTP layers",
        settings=("layout",), repairs=("balanced-layout",), source="ms-swift #9823",
    ),
    RuleRow(
        id="bare-loss-stage", group="layouts", trainer="megatron-core", severity="warning", question="right",
        when=lambda c: _laid_out(c) and c.letters[-1] == "L" and len(c.letters) == c.pp,
        message="the last rank has the loss alone: it idles for most of a step, and some releases build an empty block",
        remedy="give the last rank transformer layers",
        settings=("layout",), repairs=("balanced-layout",),
        source="Megatron-LM megatron/core/transformer/transformer_block.py; Megatron-LM #1852",
    ),
    RuleRow(
        id="bare-loss-chunk", group="layouts", trainer="megatron-core", severity="advice", question="right",
        when=lambda c: _laid_out(c) and c.letters[-1] == "L" and len(c.letters) > c.pp,
        message="the last chunk has the loss alone: right where the loss costs as much as a layer, and some trainers build "
        "no empty block",
        remedy="give the last chunk a transformer layer if the loss is cheap, or if the model fails to build",
        settings=("layout",), source="Megatron-LM #1852; ms-swift #9823",
    ),
    RuleRow(
        id="empty-stage", group="layouts", trainer="megatron-core", severity="advice", question="right",
        when=lambda c: _laid_out(c) and any(not stage for stage in c.letters),
        message="a stage of the layout is empty",
        remedy="remove the extra |, or give the stage layers, unless it keeps a group of layers together",
        settings=("layout",), repairs=("drop-empty-stages", "balanced-layout"), source="Megatron-LM #1852",
    ),
    RuleRow(
        id="standalone-embedding", group="layouts", trainer="megatron-lm", releases=">=0.11",
        when=lambda c: c.get("standalone_embedding", False),
        message="standalone-embedding-stage was removed",
        remedy="use account-for-embedding-in-pipeline-split or a layout that begins with E|",
        settings=("standalone_embedding",), source="Megatron-LM 0.11 megatron/training/arguments.py",
    ),
    RuleRow(
        id="hybrid-segments", group="layouts", trainer="megatron-lm", releases=">=0.17",
        when=lambda c: c.pp > 1 and c.hybrid_pattern and _hybrid_segments(c) > 1 and _hybrid_segments(c) % c.pp,
        message="the hybrid pattern has segments that do not divide by pp {c.pp}",
        remedy="cut the pattern with | into a multiple of {c.pp} segments",
        settings=("hybrid_pattern", "pp"), source=_ARGUMENTS,
    ),
    RuleRow(
        id="hybrid-with-splits", group="layouts", trainer="megatron-lm", releases=">=0.17",
        when=lambda c: c.hybrid_pattern and (c.get("layout", None) or c.get("layers_per_virtual_stage", None)
                                             or _accounted(c)
                                             or (_hybrid_segments(c) > 1 and c.uneven)),
        message="a hybrid pattern excludes the other settings of the pipeline split: its | are the stages",
        remedy="write the stages as | in the pattern, and drop the others",
        settings=("layout", "layers_per_virtual_stage", "account_embedding", "account_loss", "first_stage_layers",
                  "last_stage_layers"),
        source=_ARGUMENTS,
    ),
)
# fmt: on
