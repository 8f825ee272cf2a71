# ruff: noqa: E501
"""For each rule a configuration with its fault, and the change that removes it: ``rule: trainer | settings | changes``.

Settings are ``name=value`` by the names of :data:`pipeplan.extensions.review.SETTINGS`; an empty value is null.
"""

EXAMPLES = """
degree-below-one: megatron-lm | tp=0 | tp=1
gpus-not-divisible: nemo | gpus=576 tp=8 pp=8 cp=4 | gpus=512
too-few-gpus: nemo-rl | gpus=1 tp=2 pp=2 | gpus=4
expert-grid: megatron-lm | gpus=128 tp=4 pp=4 ep=32 etp= | tp=1 etp=1
mesh-experts: nemo-automodel | gpus=8 pp=4 ep=32 | gpus=128
sparse-region: torchtitan | gpus=16 pp=2 ep=16 | ep=8
mesh-product: torchtitan | gpus=8 dp_shard=2 tp=2 pp=1 | dp_shard=4
replicas-in-shards: nemo-automodel | gpus=8 tp=1 pp=1 cp=1 dp_replicate=8 | dp_replicate=2
data-parallel-product: megatron-lm | gpus=16 dp=3 tp=2 pp=2 cp=1 | dp=4
heads-over-tensor: megatron-lm | heads=12 tp=8 | tp=4
groups-over-tensor: megatron-lm | kv_groups=6 tp=4 | tp=3
groups-not-multiple: nemo | kv_groups=1 tp=2 | tp=1
groups-below-tensor: megatron-lm | kv_groups=2 tp=4 | tp=2
kv-heads-over-tensor: torchtitan | kv_groups=4 tp=8 | tp=4
automodel-kv-heads: nemo-automodel | kv_groups=4 tp=8 | tp=4
experts-over-ranks: megatron-lm | experts=60 ep=8 | ep=4
experts-without-model: megatron-lm | experts= ep=8 | ep=1
expert-bias-over-tensor: megatron-lm | experts=8 add_bias_linear=true etp= tp=2 | etp=1
sequence-parallel-alone: megatron-bridge | tp=1 sequence_parallel=true | sequence_parallel=false
experts-without-sequence: megatron-lm | experts=8 tp=2 sequence_parallel=false | sequence_parallel=true
absorbed-latent-attention: megatron-bridge | attention_variant=dsa tp=2 phase=inference | tp=1
linear-heads-over-tensor: megatron-lm | hybrid_pattern=M*M* kv_groups=2 heads=6 tp=4 | tp=2
tensor-beyond-node: megatron-lm | tp=16 device=H100 | tp=8
experts-beyond-domain: megatron-lm | ep=32 device=H100 pp=1 | ep=8
batch-not-divisible: megatron-bridge | gpus=48 tp=2 pp=6 cp=1 micro_batch=4 global_batch=36 | micro_batch=1
accumulation-not-divisible: nemo-automodel | gpus=8 tp=1 pp=1 cp=1 local_batch=3 global_batch=32 | local_batch=4
titan-batch-not-divisible: torchtitan@0.2 | gpus=8 tp=1 pp=1 cp=1 local_batch=3 global_batch=32 | local_batch=4
deepspeed-batch-product: deepspeed | dp=4 global_batch=64 micro_batch=4 microbatches=2 | microbatches=4
local-batch-not-divisible: nemo-automodel | pp=2 local_batch=9 micro_batch=2 | local_batch=8
eval-batch-not-divisible: megatron-lm | gpus=8 tp=1 pp=2 cp=1 eval_global_batch=6 micro_batch=1 | eval_global_batch=8
eval-too-few-microbatches: megatron-lm | gpus=256 tp=4 pp=2 cp=1 vpp=2 micro_batch=4 eval_global_batch=128 | eval_global_batch=1152
interleaving-too-few-microbatches: megatron-lm | gpus=8 tp=1 pp=8 cp=1 vpp=2 micro_batch=1 global_batch=4 | global_batch=8
group-size-range: megatron-lm | gpus=8 tp=1 pp=8 cp=1 vpp=2 micro_batch=1 global_batch=16 group_size=4 | group_size=8
last-group-too-small: megatron-lm | gpus=8 tp=1 pp=8 cp=1 vpp=2 micro_batch=1 global_batch=16 group_size=12 | global_batch=20
interleaving-not-multiple: megatron-lm@0.9 | gpus=8 tp=1 pp=8 cp=1 vpp=2 micro_batch=1 global_batch=20 | global_batch=24
automodel-too-few-microbatches: nemo-automodel | pp=8 local_batch=4 micro_batch=1 | local_batch=8
single-schedule-too-few-microbatches: torchtitan | pp=4 schedule=1F1B local_batch=2 micro_batch=1 | local_batch=4
rounds-not-divisible: torchtitan | pp=4 schedule=Interleaved1F1B local_batch=9 micro_batch=1 | local_batch=8
dualpipe-too-few-microbatches: torchtitan | pp=4 schedule=DualPipeV local_batch=6 micro_batch=1 | local_batch=8
context-sequence: megatron-lm | cp=8 seq_length=4104 | seq_length=4096
sequence-over-tensor: megatron-lm | sequence_parallel=true tp=8 seq_length=4100 | seq_length=4096
padding-over-ranks: nemo-rl | pad_multiple=4 tp=4 cp=2 sequence_parallel=true | pad_multiple=16
positions-too-short: megatron-lm | max_position_embeddings=2048 seq_length=4096 | max_position_embeddings=4096
rampup-not-divisible: megatron-lm | rampup_batch_size=12,16,1000 gpus=8 tp=1 pp=1 cp=1 micro_batch=1 | rampup_batch_size=16,16,1000
bubble-of-few-microbatches: torchtitan | pp=8 schedule=GPipe local_batch=4 micro_batch=1 | local_batch=32
layers-per-rank: megatron-bridge | layers=92 pp=8 layout= first_stage_layers= last_stage_layers= | first_stage_layers=10 last_stage_layers=10
layer-list-stages: mindspeed | layer_list=10,12,10 pp=4 | layer_list=10,12,10,8
layer-list-chunks: mindspeed | layer_list=8,8 layers_per_virtual_stage=4 pp=2 | layers_per_virtual_stage=
accounted-layers-per-rank: nemo | layers=60 pp=4 layout= account_embedding=true account_loss=true | account_embedding=false account_loss=false
layers-per-chunk: megatron-bridge | layers=48 pp=6 vpp=3 layout= | vpp=2
layers-per-virtual-stage: megatron-lm | layers=32 pp=4 layers_per_virtual_stage=3 | layers_per_virtual_stage=4
accounted-first-chunk: megatron-lm | layers=30 pp=8 vpp=4 layout= account_embedding=true account_loss=true | vpp=2
edges-with-accounting: megatron-lm | first_stage_layers=10 account_loss=true | account_loss=false
edges-middle-layers: megatron-lm | layers=61 pp=8 layout= first_stage_layers=7 last_stage_layers= | last_stage_layers=6
edges-without-middle: megatron-lm | layers=61 pp=2 layout= first_stage_layers=30 last_stage_layers=30 | last_stage_layers=31
edges-per-chunk: megatron-lm | layout= vpp=2 first_stage_layers=3 last_stage_layers=4 | first_stage_layers=4
middle-per-chunk: megatron-lm | layers=62 pp=8 layout= vpp=2 first_stage_layers=4 last_stage_layers=4 | vpp=3
edges-need-virtual-stages: megatron-lm | layers_per_virtual_stage=2 first_stage_layers=6 | layers_per_virtual_stage=
edges-on-one-rank: megatron-lm | pp=1 layers=20 last_stage_layers=1 | last_stage_layers=
layout-with-others: megatron-lm | layout=Et*4|t*4L first_stage_layers=4 | first_stage_layers=
two-ways-of-chunks: megatron-lm | layout=Et*4|t*4L layers_per_virtual_stage=2 | layers_per_virtual_stage=
layout-release: megatron-lm@0.12 | layout=Et*4|t*4L | layout=
layout-letters: megatron-lm | layout=Ex*4|t*4L | layout=Et*4|t*4L
layout-stages: megatron-bridge | layout=Et*4|t*4|t*4L pp=2 | pp=3
layout-chunks: megatron-bridge | layout=Et*4|t*4|t*4|t*4L pp=2 vpp=4 | vpp=2
layout-implies-chunks: megatron-bridge | layout=Et*4|t*4|t*4|t*4L pp=2 vpp= | pp=4
layout-layers: megatron-lm | layout=Et*4|t*4L layers=10 | layers=8
layout-mtp: megatron-lm | layout=Et*4|t*4L mtp_layers=1 | mtp_layers=0
layout-embedding: megatron-lm | layout=t*4|Et*4L | layout=Et*4|t*4L
layout-loss: megatron-lm | layout=Et*4|t*4 | layout=Et*4|t*4L
layout-mtp-before-layers: megatron-lm | layout=Et*4|mt*4L | layout=Et*4|t*4mL
layout-mtp-together: megatron-lm | layout=Et*4|t*4m|mL | layout=Et*4|t*4|mmL
layout-mtp-chunk: megatron-lm | layout=Et|ttm||L pp=2 | layout=Et|tt||mL
mtp-alone-release: megatron-lm@0.15 | layout=Et*4|t*4m|L | layout=Et*4|t*4|mL
swift-mtp-alone: ms-swift | layout=E(|tt)*30|mL | layout=E(|tt)*30mL
bare-loss-chunk: megatron-lm | pp=2 layout=Et*4|t*4|t*4|L | layout=Et*4|t*3|t*3|tL
bare-loss-stage: megatron-lm | pp=3 layout=Et*4|t*4|L | layout=Et*4|t*4L
empty-stage: megatron-lm | layout=Et*4||t*4L | layout=Et*4|t*4L
standalone-embedding: megatron-lm | standalone_embedding=true | standalone_embedding=false
hybrid-segments: megatron-lm | hybrid_pattern=M*|M*|M*|M* pp=3 | pp=2
hybrid-with-splits: megatron-lm | hybrid_pattern=M*|M* layout=Et|tL | layout=
titan-stages-per-rank: torchtitan | pp=4 layers=30 layers_per_stage=7 schedule=1F1B | layers_per_stage=8
automodel-stages-per-rank: nemo-automodel | pp=4 layers=30 layers_per_stage=6 round_stages= schedule=1F1B | round_stages=up
single-schedule-stages: torchtitan | pp=4 layers=30 layers_per_stage=4 schedule=1F1B | layers_per_stage=8
looped-schedule-stages: torchtitan | pp=4 layers=30 layers_per_stage=8 schedule=Interleaved1F1B | layers_per_stage=4
v-schedule-stages: torchtitan | pp=4 layers=30 layers_per_stage=2 schedule=ZBVZeroBubble | layers_per_stage=4
more-stages-than-layers: torchtitan | pp=8 layers=6 schedule=Interleaved1F1B | pp=4
automodel-more-stages-than-layers: nemo-automodel | layers=6 pp=4 schedule=Interleaved1F1B | schedule=1F1B
edge-weights-too-large: torchtitan | pp=8 layers=16 schedule=1F1B first_stage_less=4 | first_stage_less=1
parts-per-rank: torchtitan | pp=2 modules_per_part=[["tok_embeddings"],["layers.0"],["norm","output"]] | pp=3
parts-of-schedule: torchtitan | pp=2 schedule=Interleaved1F1B modules_per_part=[["tok_embeddings","layers.0"],["layers.1","output"]] | schedule=1F1B
parts-layers: torchtitan | layers=3 modules_per_part=[["tok_embeddings","layers.0"],["layers.1","output"]] | layers=2
chunks-on-one-rank: megatron-lm | pp=1 vpp=2 | vpp=
two-ranks-batched-messages: megatron-lm | pp=2 vpp=2 overlap_p2p=false | overlap_p2p=true
two-ranks-mixed-gradients: megatron-bridge | pp=2 vpp=2 overlap_p2p=false batch_p2p=true | overlap_p2p=true batch_p2p=false
overlap-and-batch: megatron-bridge | pp=4 vpp=2 overlap_p2p=true batch_p2p=true | batch_p2p=false
warmup-overlap: megatron-lm | p2p_warmup_overlap=true overlap_p2p=false | overlap_p2p=true
pipeline-dtype: nemo-rl | pp=2 pipeline_dtype= | pipeline_dtype=bfloat16
defer-embedding-alone: megatron-lm | defer_embedding_wgrad=true pp=1 | pp=2
defer-embedding-fusion: megatron-lm | defer_embedding_wgrad=true gradient_accumulation_fusion=false | gradient_accumulation_fusion=true
hyper-connections-pipeline: megatron-lm | mhc=true pp=2 | pp=1
hyper-connections-mtp: megatron-lm | mhc=true mtp_layers=1 | mtp_layers=0
mtp-positions: megatron-lm | mtp_layers=1 position_embedding=relative | position_embedding=rope
unknown-torch-schedule: torchtitan | pp=2 schedule=2F2B | schedule=1F1B
abstract-schedule: torchtitan | pp=2 schedule=PipelineScheduleMulti | schedule_csv=order.csv
split-backward-compile: torchtitan | pp=2 schedule=InterleavedZeroBubble compile=true | compile=false
split-backward-checkpointing: torchtitan | pp=2 schedule=ZBVZeroBubble ac_mode=full | ac_mode=
split-backward-flex: torchtitan | pp=2 schedule=ZBVZeroBubble attention=flex | attention=sdpa
split-backward-tied: nemo-automodel | pp=2 schedule=ZBVZeroBubble tied=true | tied=false
split-backward-ddp: torchtitan | pp=2 schedule=ZBVZeroBubble dp_replicate=2 dp_shard=1 | dp_shard=2
titan-tied-embedding: torchtitan | pp=2 tied=true | tied=false
titan-varlen: torchtitan@0.2 | pp=2 attention=varlen | attention=flex
titan-graphs-pipeline: torchtitan | pp=2 disable_cuda_graphs=false | disable_cuda_graphs=true
titan-context-attention: torchtitan | cp=2 attention=sdpa | attention=flex
gpipe-memory: torchtitan | pp=2 schedule=GPipe local_batch=8 micro_batch=1 | schedule=1F1B
reshard-each-microbatch: torchtitan | pp=2 fsdp_reshard=always | fsdp_reshard=default
zero-beside-pipeline: deepspeed | pp=4 zero_stage=2 | zero_stage=1
unknown-partition-method: deepspeed | partition_method=balanced | partition_method=parameters
profile-partition: deepspeed | partition_method=profile | partition_method=uniform
bf16-immediate-gradients: deepspeed | pp=4 bf16=true deepspeed_bf16_grads=bf16 | deepspeed_bf16_grads=fp32
lazy-communicators: torchtitan | pp=4 gpus=4 schedule=ZBVZeroBubble torch_version=2.4 | torch_version=2.6
automodel-fsdp-pipeline: nemo-automodel | pp=2 strategy=megatron_fsdp | strategy=fsdp2
overlap-needs-chunks: megatron-lm | ep_a2a_overlap=true pp=4 vpp= | vpp=2
overlap-needs-experts: megatron-lm | ep_a2a_overlap=true ep=1 | ep=2
overlap-dispatcher: megatron-lm | ep_a2a_overlap=true dispatcher=allgather | dispatcher=alltoall
overlap-full-recompute: megatron-lm | ep_a2a_overlap=true recompute_granularity=full | recompute_granularity=selective
overlap-recomputed-experts: megatron-lm | ep_a2a_overlap=true recompute_modules=moe | recompute_modules=moe_act
overlap-precision: megatron-lm | ep_a2a_overlap=true bf16=false fp16=false | bf16=true
overlap-shared-experts: megatron-lm | ep_a2a_overlap=true shared_expert_overlap=true | shared_expert_overlap=false
overlap-mtp: megatron-lm | ep_a2a_overlap=true mtp_layers=2 | mtp_layers=1
overlap-release: megatron-lm@0.13 | ep_a2a_overlap=true | ep_a2a_overlap=false
delayed-weights-overlap: megatron-lm | delay_wgrad=true ep_a2a_overlap=false | ep_a2a_overlap=true
delayed-weights-engine: megatron-lm | delay_wgrad=true transformer_impl=local | transformer_impl=transformer_engine
early-release-overlap: megatron-lm | early_attn_release=true ep_a2a_overlap=false | ep_a2a_overlap=true
two-exchange-overlaps: megatron-lm | dispatch_overlap=true ep_a2a_overlap=true | ep_a2a_overlap=false
deepep-without-flex: megatron-lm | deepep=true dispatcher=alltoall | dispatcher=flex
deepep-on-grace: megatron-bridge | dispatcher=flex dispatcher_backend=deepep device=GB200 | dispatcher_backend=hybridep
deepep-between-blackwell-nodes: megatron-bridge | dispatcher=deepep device=B200 ep=32 | ep=8
deepep-capacity-padding: megatron-lm | dispatcher_backend=deepep pad_to_capacity=true | pad_to_capacity=false
shared-overlap-dispatcher: megatron-lm | shared_expert_overlap=true shared_expert_size=2048 dispatcher=allgather | dispatcher=alltoall
capacity-routing: megatron-lm | capacity_factor=1.5 load_balancing=sinkhorn | load_balancing=aux_loss
padding-without-capacity: megatron-lm | pad_to_capacity=true capacity_factor= | capacity_factor=1.5
experts-over-groups: megatron-lm | experts=60 router_groups=8 router_group_topk=4 | router_groups=6
group-topk: megatron-lm | router_groups=4 router_group_topk=8 | router_groups=8
top-one-softmax: megatron-lm | experts=8 topk=1 router_score=softmax router_pre_softmax=false load_balancing=aux_loss | router_pre_softmax=true
expert-bias-score: megatron-lm | router_expert_bias=true router_score=softmax | router_score=sigmoid
router-padding-precision: megatron-lm | router_padding=true fp8= fp4= | fp8=hybrid
router-padding-dispatcher: megatron-lm | router_padding=true dispatcher=allgather | dispatcher=alltoall
router-precision: megatron-lm | experts=64 router_dtype= | router_dtype=fp32
allgather-many-experts: megatron-lm | ep=8 dispatcher=allgather | dispatcher=alltoall
no-grouped-products: megatron-lm | experts=64 ep=8 grouped_gemm=false | grouped_gemm=true
experts-over-tensor-ranks: megatron-lm | experts=64 tp=2 ep=8 etp= | etp=1
full-without-method: megatron-lm | recompute_granularity=full recompute_method= | recompute_method=uniform
full-without-layers: megatron-lm | recompute_granularity=full recompute_num_layers= | recompute_num_layers=1
selective-with-method: megatron-lm | recompute_granularity=selective recompute_method=uniform | recompute_method=
selective-with-layers: megatron-lm | recompute_granularity=selective recompute_num_layers=1 | recompute_num_layers=
unknown-granularity: megatron-lm | recompute_granularity=partial | recompute_granularity=full
unknown-recompute-method: megatron-lm | recompute_method=random | recompute_method=block
unknown-recompute-module: megatron-lm | recompute_granularity=selective recompute_modules=attention | recompute_modules=core_attn
recompute-activation-experts: megatron-lm | recompute_granularity=selective recompute_modules=moe_act grouped_gemm=false | grouped_gemm=true
recompute-latent: megatron-lm | recompute_granularity=selective recompute_modules=mla_up_proj mla=false | mla=true
recompute-shared-experts: megatron-lm | recompute_granularity=selective recompute_modules=shared_experts shared_expert_overlap=true shared_expert_size=2048 | shared_expert_overlap=false
recompute-delayed-scaling: megatron-lm | fp8=hybrid fp8_recipe=delayed recompute_modules=layernorm | fp8_recipe=tensorwise
distribute-without-tensor: megatron-lm | distribute_saved_activations=true tp=1 | distribute_saved_activations=false
distribute-with-sequence: megatron-lm | distribute_saved_activations=true sequence_parallel=true recompute_granularity=full | sequence_parallel=false
offload-pipeline: megatron-lm | cpu_offloading=true pp=2 | pp=1
offload-recompute: megatron-lm | cpu_offloading=true recompute_granularity=selective | recompute_granularity=
offload-layers: megatron-lm | cpu_offloading_layers=32 layers=32 | cpu_offloading_layers=8
two-offloads: megatron-lm | fine_grained_offloading=true cpu_offloading=true | cpu_offloading=false
offload-without-modules: megatron-lm | fine_grained_offloading=true offload_modules= | offload_modules=core_attn
unknown-offload-module: megatron-lm | fine_grained_offloading=true offload_modules=attention | offload_modules=core_attn
offload-projection-alone: megatron-lm | fine_grained_offloading=true offload_modules=attn_proj | offload_modules=attn_proj,core_attn
offload-inside-recompute: megatron-lm | fine_grained_offloading=true offload_modules=moe_act recompute_modules=moe | recompute_modules=layernorm
offload-engine: megatron-lm | fine_grained_offloading=true transformer_impl=local | transformer_impl=transformer_engine
offload-environment: megatron-lm | fine_grained_offloading=true cpu_offload_v1=0 | cpu_offload_v1=1
offloaded-optimizer: megatron-lm | optimizer_cpu_offload=true precision_aware_optimizer=false | precision_aware_optimizer=true
full-recompute-advice: megatron-lm | recompute_granularity=full recompute_method=uniform pp=4 | recompute_method=block
fused-attention-recompute: megatron-lm | recompute_granularity=selective recompute_modules=core_attn transformer_impl=transformer_engine | recompute_modules=layernorm
two-precisions: megatron-lm | bf16=true fp16=true | fp16=false
fp8-and-fp4: megatron-lm | fp8=hybrid fp4=e2m1 | fp4=
fp8-parameters: megatron-lm | fp8_param_gather=true fp8= | fp8=hybrid
fp8-parameters-optimizer: megatron-lm | fp8_param_gather=true distributed_optimizer=false | distributed_optimizer=true
fp4-parameters: megatron-lm | fp4_param_gather=true fp4= | fp4=e2m1
gradient-buffer-reuse: megatron-lm | reuse_grad_buffer=true fp8_param_gather=false | fp8_param_gather=true
gradient-buffer-step: megatron-lm | reuse_grad_buffer=true param_gather_with_step=true | param_gather_with_step=false
mxfp8-without-overlap: megatron-lm@0.16 | fp8_param_gather=true reuse_grad_buffer=true overlap_grad_reduce=false overlap_param_gather=false | overlap_grad_reduce=true overlap_param_gather=true
delayed-edges: megatron-lm | fp8=hybrid first_last_layers_bf16=true fp8_recipe=delayed | fp8_recipe=tensorwise
edges-in-bf16: megatron-lm | fp8=hybrid first_last_layers_bf16=true layers=32 pp=16 layers_at_start_bf16=3 layers_at_end_bf16=1 | layers_at_start_bf16=1
fp32-gradients: megatron-lm | precision_aware_optimizer=false main_grads_dtype=bf16 | main_grads_dtype=fp32
mxfp8-on-hopper: megatron-bridge | precision=mxfp8 device=H100 | device=B200
fp4-before-blackwell: megatron-bridge | precision=nvfp4 device=H100 | device=GB200
fp8-on-ampere: megatron-lm | fp8=hybrid device=A100 | device=H100
fp8-hidden-size: megatron-lm | fp8=hybrid hidden=4104 ffn=16384 tp=1 | hidden=4096
fp8-tokens: megatron-lm | fp8=hybrid seq_length=1000 micro_batch=1 tp=1 | seq_length=1024
residual-messages: megatron-lm | fp32_residual=true pp=2 | pp=1
fp32-training: megatron-lm | bf16=false fp16=false fp8= fp4= pp=2 | bf16=true
gather-overlap-optimizer: megatron-lm | overlap_param_gather=true distributed_optimizer=false megatron_fsdp=false | distributed_optimizer=true
gather-overlap-reduce: megatron-lm | overlap_param_gather=true overlap_grad_reduce=false | overlap_grad_reduce=true
gather-with-step: megatron-lm | param_gather_with_step=true overlap_param_gather=true distributed_optimizer=true pp=4 vpp= | vpp=2
tensor-overlap-sequence: megatron-lm | tp_comm_overlap=true sequence_parallel=false tp=2 | sequence_parallel=true
connections-one: megatron-lm | device_connections=8 tp=2 device=H100 megatron_fsdp=false torch_fsdp2=false ep_a2a_overlap=false | device_connections=1
connections-fsdp: megatron-lm | device_connections=1 megatron_fsdp=true | device_connections=
connections-exchange: megatron-lm | device_connections=1 ep_a2a_overlap=true device=H100 | device_connections=32
fsdp2-pipeline: megatron-lm | torch_fsdp2=true pp=2 | pp=1
fsdp2-optimizer: megatron-lm | torch_fsdp2=true distributed_optimizer=true gradient_accumulation_fusion=false | distributed_optimizer=false
fsdp2-tied: megatron-lm | torch_fsdp2=true untied=false | untied=true
fsdp-checkpoint: megatron-lm | megatron_fsdp=true ckpt_format=torch_dist | ckpt_format=fsdp_dtensor
checkpoint-without-fsdp: megatron-lm | megatron_fsdp=false ckpt_format=fsdp_dtensor | ckpt_format=torch_dist
fsdp-optimizer: megatron-lm | megatron_fsdp=true optimizer=muon | optimizer=adam
sharded-pipeline: megatron-lm | megatron_fsdp=true pp=2 sharding_strategy=optim_grads_params | sharding_strategy=optim
graphs-full-recompute: megatron-lm | cuda_graph_impl=local recompute_granularity=full | recompute_granularity=selective
graphs-offload: megatron-lm | cuda_graph_impl=local cpu_offloading=true | cpu_offloading=false
graphs-nan-check: megatron-lm | cuda_graph_impl=full_iteration check_nan=true | check_nan=false
graphs-experts-and-router: megatron-lm | cuda_graph_impl=local cuda_graph_modules=moe,moe_router | cuda_graph_modules=moe_router
graphs-preprocess: megatron-lm | cuda_graph_impl=transformer_engine cuda_graph_modules=moe_preprocess | cuda_graph_modules=moe_preprocess,moe_router
graphs-dense: megatron-lm | cuda_graph_impl=local cuda_graph_modules=moe_router experts= | experts=8
graphs-dropless-experts: megatron-lm | cuda_graph_impl=local cuda_graph_modules=moe experts=8 capacity_factor= pad_to_capacity=false | cuda_graph_modules=moe_router
graphs-recomputed-experts: megatron-lm | cuda_graph_impl=transformer_engine cuda_graph_modules=moe_router recompute_granularity=selective recompute_modules=moe | recompute_modules=layernorm
graphs-exchange-overlap: megatron-lm | ep_a2a_overlap=true cuda_graph_impl=transformer_engine cuda_graph_modules=mlp | cuda_graph_modules=attn
graphs-iteration-modules: megatron-lm | cuda_graph_impl=full_iteration cuda_graph_modules=attn | cuda_graph_modules=
two-graph-switches: megatron-lm | enable_cuda_graph=true external_cuda_graph=false cuda_graph_impl=local | enable_cuda_graph=false
graphs-allocator: megatron-lm | cuda_graph_impl=transformer_engine alloc_conf=expandable_segments:True pp=2 | alloc_conf=expandable_segments:False
refused-loss-fusion: megatron-lm | loss_fusion=true loss_fusion_impl=te | loss_fusion_impl=native
unstable-loss-fusion: megatron-lm@0.18 | loss_fusion=true loss_fusion_impl=te | loss_fusion_impl=native
hybrid-context-pipeline: megatron-lm | hybrid_context_parallel=true pp=2 | pp=1
hierarchical-context: megatron-lm | hierarchical_cp=2,2 cp=8 | cp=4
hierarchical-context-missing: megatron-lm | cp=4 cp_comm_type=a2a+p2p hierarchical_cp= | hierarchical_cp=2,2
context-all-to-all-heads: megatron-lm | cp=8 cp_comm_type=a2a kv_groups=8 tp=2 | cp_comm_type=p2p
latent-with-groups: megatron-lm | mla=true group_query_attention=true | group_query_attention=false
replicated-state: megatron-lm | gpus=8 tp=1 pp=1 cp=1 distributed_optimizer=false megatron_fsdp=false torch_fsdp2=false | distributed_optimizer=true
exposed-gradients: megatron-lm | gpus=8 tp=1 pp=1 cp=1 overlap_grad_reduce=false | overlap_grad_reduce=true
exposed-messages: megatron-lm | pp=4 vpp=2 overlap_p2p=false | overlap_p2p=true
replicated-activations: megatron-lm | tp=4 sequence_parallel=false | sequence_parallel=true
memory-does-not-fit: megatron-lm | model_name=llama3-70b device=h100 gpus=64 tp=1 pp=8 cp=1 vpp= micro_batch=4 global_batch=64 seq_length=8192 layout= layers=80 | tp=8 pp=8 micro_batch=1
memory-tight: megatron-lm | model_name=llama3-8b device=h100 gpus=8 tp=1 pp=1 cp=1 micro_batch=1 global_batch=64 seq_length=4096 layers=32 | layers=24
stages-unbalanced: megatron-lm | model_name=llama3-70b device=h200 gpus=64 tp=8 pp=4 cp=1 vpp= micro_batch=1 global_batch=64 seq_length=4096 layers=80 layout=Et*28|t*18|t*17|t*17L | layout=Et*20|t*21|t*20|t*19L
last-stage-heavy: primus | layers=43 mtp_layers=1 pp=4 vpp= layout=Et*10|t*11|t*11|t*11mL | layout=Et*10|t*12|t*12|t*9mL
stages-uneven: megatron-lm | layers=40 pp=4 vpp= layout=Et*4|t*16|t*10|t*10L | layout=Et*10|t*10|t*10|t*10L
vision-on-first-stage: megatron-lm | layers=40 pp=4 vpp= vision=true layout= | first_stage_layers=7 layout=
idle-pipeline: megatron-lm | model_name=llama3-70b device=h200 gpus=64 tp=8 pp=4 cp=1 vpp= micro_batch=1 global_batch=8 seq_length=4096 layers=80 layout= | global_batch=128
neox-groups-over-tensor: gpt-neox | kv_groups=4 heads=32 tp=8 | tp=4
neox-zero-with-experts: gpt-neox | experts=8 zero_stage=2 pp=1 | zero_stage=1
neox-bf16-gradients: gpt-neox | precision=bfloat16 zero_stage=1 | precision=fp16
nanotron-too-few-microbatches: nanotron | pp=8 schedule=1f1b microbatches=1 | microbatches=7
nanotron-kv-heads-over-tensor: nanotron | kv_groups=4 tp=8 | tp=4
nanotron-heads-over-groups: nanotron | heads=16 kv_groups=5 | kv_groups=4
"""
