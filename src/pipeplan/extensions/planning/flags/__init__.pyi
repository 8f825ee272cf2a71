"""Names of pipeplan.extensions.planning.flags, made by ``python -m docs.build.stubs --write``."""

from pipeplan.extensions.planning.flags.by_trainer import flags_of as flags_of
from pipeplan.extensions.planning.flags.by_trainer import plan_flags as plan_flags
from pipeplan.extensions.planning.flags.configurations import assumptions_of as assumptions_of
from pipeplan.extensions.planning.flags.configurations import cluster_of as cluster_of
from pipeplan.extensions.planning.flags.configurations import configuration_document as configuration_document
from pipeplan.extensions.planning.flags.configurations import is_configuration as is_configuration
from pipeplan.extensions.planning.flags.configurations import model_of as model_of
from pipeplan.extensions.planning.flags.configurations import read_configuration as read_configuration
from pipeplan.extensions.planning.flags.megatron import offloaded_share as offloaded_share
from pipeplan.extensions.planning.flags.megatron_hybrid import layers_of_pattern as layers_of_pattern
from pipeplan.extensions.planning.flags.megatron_hybrid import short_form_of as short_form_of
from pipeplan.extensions.planning.flags.scripts import function_name as function_name
