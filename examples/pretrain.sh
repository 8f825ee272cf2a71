TP=4
PP=8
MODEL_ARGS=(
  --num-layers 94 --hidden-size 4096 --ffn-hidden-size 12288 --num-attention-heads 64
  --group-query-attention --num-query-groups 4 --kv-channels 128 --swiglu
  --num-experts 128 --moe-ffn-hidden-size 1536 --moe-router-topk 8 --vocab-size 151936
  --seq-length 4096 --max-position-embeddings 40960
)
torchrun --nproc-per-node 8 --nnodes 16 pretrain_gpt.py "${MODEL_ARGS[@]}" \
  --tensor-model-parallel-size $TP --sequence-parallel \
  --pipeline-model-parallel-size $PP \
  --expert-model-parallel-size 32 \
  --micro-batch-size 1 --global-batch-size 256 \
  --use-distributed-optimizer --bf16
