torchrun --nproc-per-node 1 --nnodes 2 pretrain_gpt.py --num-layers 12 --pipeline-model-parallel-size 2 \
  --micro-batch-size 1 --global-batch-size 8 --seq-length 512 --decoder-first-pipeline-num-layers 9 --bf16
