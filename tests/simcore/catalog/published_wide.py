"""More configs typed in from published files: other sizes, newer families, and models with towers.

As in `published_configs.py`: sizes as the files print them, and the parameters in billions that the model
cards print. Active parameters are compared where they are printed to two digits. Not formatted: one model, a few lines.
"""

from __future__ import annotations

from tests.simcore.catalog.published_configs import Published, base

LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128}
GRANITE_LAYERS = (
    ["mamba"] * 5
    + ["attention"]
    + ["mamba"] * 9
    + ["attention"]
    + ["mamba"] * 9
    + ["attention"]
    + ["mamba"] * 9
    + ["attention"]
    + ["mamba"] * 4
)
GRANITE_STATES = {
    "mamba_d_state": 128,
    "mamba_n_groups": 1,
    "mamba_d_head": 64,
    "mamba_expand": 2,
    "mamba_d_conv": 4,
    "mamba_chunk_size": 256,
    "layer_types": GRANITE_LAYERS,
    "tie_word_embeddings": True,
}
FALCON_STATES = {
    "mamba_d_conv": 4,
    "mamba_n_groups": 1,
    "mamba_expand": 2,
    "mamba_chunk_size": 128,
    "mamba_rms_norm": False,
    "mamba_norm_before_gate": False,
}
NEMOTRON_STATES = {
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "expand": 2,
    "chunk_size": 128,
    "use_bias": False,
    "attention_bias": False,
    "mlp_bias": False,
}
KIMI_K3_FULL = [*range(4, 93, 4), 93]
MINIMAX_SPARSE = [0] * 3 + [1] * 57
ZAMBA2_7B_BLOCKS = [6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77]
ZAMBA2_1B_BLOCKS = [5, 11, 17, 23, 29, 35]


def shared_block_layers(at: list[int], layers: int) -> list[str]:
    return ["hybrid" if layer in at else "mamba" for layer in range(layers)]


# fmt: off
WIDE_DENSE_AND_EXPERTS = {
    "phi-3-small": Published(
        {"model_type": "phi3small", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "num_key_value_heads": 8, "ff_intermediate_size": 14336, "vocab_size": 100352,
        "max_position_embeddings": 8192, "attention_bias": False, "mup_attn_multiplier": 1.0,
        "dense_attention_every_n_layers": 2, "blocksparse_block_size": 64, "blocksparse_num_local_blocks": 16,
        "blocksparse_vert_stride": 8, "blocksparse_homo_head_pattern": False, "gegelu_limit": 20.0,
        "ff_dim_multiplier": None}, 7.392
    ),
    "internlm3-8b": Published(
        base("internlm3", 4096, 48, 32, 2, 10240, 128512, head_dim=128, bias=False, qkv_bias=False), 8.804
    ),
    "command-r-plus": Published(
        base("cohere", 12288, 64, 96, 8, 33792, 256000, use_qk_norm=True), 103.81
    ),
    "falcon-11b": Published(
        {"model_type": "falcon", "hidden_size": 4096, "num_hidden_layers": 60, "num_attention_heads": 32,
        "num_kv_heads": 8, "vocab_size": 65024, "new_decoder_architecture": True, "parallel_attn": True,
        "ff_factor": 4, "tie_word_embeddings": False, "ffn_hidden_size": 16384, "num_ln_in_parallel_attn": 1,
        "bias": False}, 11.1
    ),
    "opt-6.7b": Published(
        {"model_type": "opt", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
        "ffn_dim": 16384, "vocab_size": 50272, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096,
        "do_layer_norm_before": True}, 6.658
    ),
    "mpt-30b": Published(
        {"model_type": "mpt", "d_model": 7168, "n_layers": 48, "n_heads": 64, "expansion_ratio": 4,
        "max_seq_len": 8192, "vocab_size": 50432, "no_bias": True, "attn_config": {"attn_type":
        "multihead_attention", "alibi": True}}, 29.958
    ),
    "minicpm3-4b": Published(
        base("minicpm3", 2560, 62, 40, 40, 6400, 73448, q_lora_rank=768, kv_lora_rank=256, qk_nope_head_dim=64,
        qk_rope_head_dim=32), 4.074
    ),
    "moonlight-16b": Published(
        base("deepseek_v3", 2048, 27, 16, 16, 11264, 163840, q_lora_rank=None, **LATENT,
        moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
        first_k_dense_replace=1, moe_layer_freq=1), 15.96, 2.8
    ),
    "mistral-large-3": Published(
        {"model_type": "mistral3", "text_config": base("mistral4", 7168, 61, 128, 128, 16384, 131072,
        q_lora_rank=1536, **LATENT, head_dim=128, moe_intermediate_size=4096, n_routed_experts=128,
        n_shared_experts=1, num_experts_per_tok=4, first_k_dense_replace=3)}, 675, 41
    ),
    "glm-4-9b": Published(
        base("glm", 4096, 40, 32, 2, 13696, 151552, head_dim=128, attention_bias=True), 9.4
    ),
    "glm-4.7-flash": Published(
        base("glm4_moe_lite", 2048, 47, 20, 20, 10240, 154880, q_lora_rank=768, kv_lora_rank=512,
        qk_nope_head_dim=192, qk_rope_head_dim=64, v_head_dim=256, moe_intermediate_size=1536,
        n_routed_experts=64, num_experts_per_tok=4, n_shared_experts=1, first_k_dense_replace=1,
        num_nextn_predict_layers=1), 29.9
    ),
    "solar-open-100b": Published(
        base("solar_open", 4096, 48, 64, 8, 10240, 196608, head_dim=128, moe_intermediate_size=1280,
        n_routed_experts=128, n_shared_experts=1, num_experts_per_tok=8, first_k_dense_replace=0,
        norm_topk_prob=True, routed_scaling_factor=1.0), 102.6, 12
    ),
    "trinity-mini": Published(
        base("afmoe", 2048, 32, 32, 4, 6144, 200192, head_dim=128, sliding_window=2048,
        global_attn_every_n_layers=4, num_experts=128, num_experts_per_tok=8, num_shared_experts=1,
        num_dense_layers=2, moe_intermediate_size=1024,
        layer_types=(["sliding_attention"]*3+["full_attention"])*8), 26.1
    ),
    "ling-1t": Published(
        base("bailing_moe_v2", 8192, 80, 64, 8, 18432, 157184, head_dim=128, num_experts=256,
        num_experts_per_tok=8, num_shared_experts=1, moe_intermediate_size=2048, first_k_dense_replace=4,
        use_qk_norm=True), 1000, 50
    ),
    "k-exaone-236b": Published(
        base("exaone_moe", 6144, 48, 64, 8, 18432, 153600, head_dim=128, sliding_window=128,
        sliding_window_pattern="LLLG", num_experts=128, num_experts_per_tok=8, num_shared_experts=1,
        moe_intermediate_size=2048, is_moe_layer=[False]+[True]*47,
        layer_types=(["sliding_attention"]*3+["full_attention"])*12, first_k_dense_replace=1,
        num_nextn_predict_layers=1), 236.6, 23
    ),
    "hunyuan-large": Published(
        base("hunyuan", 6400, 64, 80, 8, 18304, 129024, num_experts=16, moe_topk=1, num_shared_expert=1,
        use_mixed_mlp_moe=True, use_cla=True, cla_share_factor=2, use_qk_norm=True, tie_word_embeddings=True,
        attention_bias=False, mlp_bias=False, capacity_factor=1.0), 389, 52
    ),
    "phi-mini-moe": Published(
        base("phimoe", 4096, 32, 32, 8, 960, 32064, head_dim=128, num_local_experts=16, num_experts_per_tok=2,
        sliding_window=2047, attention_bias=True, lm_head_bias=True), 7.65, 2.4
    ),
    "grok-2": Published(
        base("grok-1", 8192, 64, 64, 8, 32768, 131072, architectures=["Grok1ForCausalLM"], num_local_experts=8,
        num_experts_per_tok=2, moe_intermediate_size=16384, residual_moe=True), 269, 115
    ),
    "persimmon-8b": Published(
        base("persimmon", 4096, 36, 64, 64, 16384, 262144, qk_layernorm=True, hidden_act="relu2"), 9.4
    ),
    "xglm-7.5b": Published(
        {"model_type": "xglm", "d_model": 4096, "num_layers": 32, "attention_heads": 32, "ffn_dim": 16384,
        "vocab_size": 256008, "max_position_embeddings": 2048}, 7.49
    ),
    "bitnet-2b": Published(
        base("bitnet", 2560, 30, 20, 5, 6912, 128256, tie_word_embeddings=True), 2.41
    ),
    "skywork-moe": Published(
        base("skywork_moe", 4608, 52, 36, 36, 12288, 65536, num_experts=[16], moe_use_skywork_gating=True,
        num_experts_per_tok=2), 146
    ),
}

WIDE_HYBRIDS = {
    "jamba-1.5-large": Published(
        base("jamba", 8192, 72, 64, 8, 24576, 65536, attn_layer_period=8, attn_layer_offset=4,
        expert_layer_period=2, expert_layer_offset=1, num_experts=16, num_experts_per_tok=2, mamba_d_conv=4,
        mamba_d_state=16, mamba_dt_rank=512, mamba_expand=2, mamba_conv_bias=True, mamba_proj_bias=False),
        398.6, 94
    ),
    "jamba-reasoning-3b": Published(
        base("jamba", 2560, 28, 20, 1, 8192, 65536, attn_layer_period=14, attn_layer_offset=7,
        expert_layer_period=2, expert_layer_offset=1, num_experts=1, num_experts_per_tok=1, mamba_d_conv=4,
        mamba_d_state=16, mamba_dt_rank=160, mamba_expand=2, tie_word_embeddings=True), 3.03
    ),
    "granite-4-h-tiny": Published(
        base("granitemoehybrid", 1536, 40, 12, 4, 512, 100352, shared_intermediate_size=1024,
        num_local_experts=64, num_experts_per_tok=6, mamba_n_heads=48, **GRANITE_STATES), 6.939
    ),
    "granite-4-h-1b": Published(
        base("granitemoehybrid", 1536, 40, 12, 4, 4096, 100352, shared_intermediate_size=4096,
        num_local_experts=0, num_experts_per_tok=0, mamba_n_heads=48, **GRANITE_STATES), 1.462
    ),
    "granite-4-micro": Published(
        base("granitemoehybrid", 2560, 40, 40, 8, 8192, 100352, shared_intermediate_size=8192,
        num_local_experts=0, num_experts_per_tok=0, mamba_n_heads=128, **{**GRANITE_STATES, "layer_types":
        ["attention"]*40}), 3.403
    ),
    "falcon-h1-0.5b": Published(
        base("falcon_h1", 1024, 36, 8, 2, 2048, 32784, head_dim=64, mamba_d_state=128, mamba_n_heads=24,
        mamba_d_head=64, mamba_d_ssm=1536, **FALCON_STATES), 0.521
    ),
    "nemotron-nano-12b-v2": Published(
        base("nemotron_h", 5120, 62, 40, 8, 20480, 131072, head_dim=128,
        hybrid_override_pattern="M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M*-M-M-M-M-",
        **{**NEMOTRON_STATES, "mamba_head_dim": 80}), 12.31
    ),
    "lfm2-2.6b": Published(
        {"model_type": "lfm2", "hidden_size": 2048, "num_hidden_layers": 30, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 10752, "block_auto_adjust_ff_dim": False, "conv_L_cache":
        3, "vocab_size": 65536, "max_position_embeddings": 128000, "layer_types": ["conv", "conv",
        "full_attention", "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv",
        "conv", "conv", "full_attention", "conv", "conv", "conv", "full_attention", "conv", "conv", "conv",
        "full_attention", "conv", "conv", "full_attention", "conv", "conv", "full_attention", "conv", "conv"]},
        2.569
    ),
    "step-3.5-flash": Published(
        {"model_type": "step3p5", "architectures": ["Step3p5ForCausalLM"], "hidden_size": 4096,
        "intermediate_size": 11264, "num_hidden_layers": 45, "max_position_embeddings": 262144, "vocab_size":
        128896, "moe_layers_enum": ", ".join(map(str, range(3, 45))), "num_attention_heads": 64,
        "num_attention_groups": 8, "head_dim": 128, "use_moe": True, "moe_num_experts": 288, "moe_top_k": 8,
        "moe_intermediate_size": 1280, "share_expert_dim": 1280, "layer_types":
        (["full_attention"]+["sliding_attention"]*3)*12, "attention_other_setting": {"attention_type":
        "sliding_attention", "num_attention_heads": 96, "num_attention_groups": 8, "head_dim": 128,
        "true_head_dim": 128}, "sliding_window": 512, "use_head_wise_attn_gate": True,
        "num_nextn_predict_layers": 3, "use_qk_norm": True, "moe_every_n_layer": 1, "moe_layer_offset": 0,
        "att_impl_type": "GQA", "partial_rotary_factors": [0.5]*48, "swiglu_limits": [0]*48,
        "swiglu_limits_shared": [0]*48, "rope_theta": [1.0]*48, "yarn_only_types": ["full_attention"],
        "norm_expert_weight": True, "need_fp32_gate": True, "use_rope_layers": [], "zero_centered": True}, 196
    ),
    "kimi-k3": Published(
        {"model_type": "kimi_k3", "text_config": {"model_type": "kimi_linear", "hidden_size": 7168,
        "intermediate_size": 33792, "num_hidden_layers": 93, "num_attention_heads": 96, "num_key_value_heads":
        96, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "mla_use_nope": True, "mla_use_output_gate": True,
        "latent_moe_use_norm": True, "routed_expert_hidden_size": 3584, "attn_res_block_size": 12,
        "activation_situ_beta": 4.0, "activation_situ_linear_beta": 25.0, "moe_intermediate_size": 3072,
        "moe_layer_freq": 1, "num_experts": 896, "num_experts_per_token": 16, "num_shared_experts": 2,
        "num_nextn_predict_layers": 0, "max_position_embeddings": 1048576, "vocab_size": 163840,
        "linear_attn_config": {"full_attn_layers": KIMI_K3_FULL, "gate_lower_bound": -5.0, "head_dim": 128,
        "kda_layers": [i for i in range(1, 94) if i not in KIMI_K3_FULL], "num_heads": 96,
        "short_conv_kernel_size": 4, "use_full_rank_gate": True}, "quantization_config": {"config_groups":
        {"group_0": {"format": "mxfp4-pack-quantized", "targets": ["Linear"], "weights": {"group_size": 32,
        "num_bits": 4, "type": "float"}}}, "format": "mxfp4-pack-quantized", "ignore": ["re:.*self_attn.*",
        "re:.*shared_experts.*", "re:.*mlp\\.(gate|up|gate_up|down)_proj.*", "re:.*lm_head.*"],
        "kv_cache_scheme": None, "quant_method": "compressed-tensors"}}, "tie_word_embeddings": False,
        "vision_config": {"init_pos_emb_height": 64, "init_pos_emb_width": 64, "merge_kernel_size": [2, 2],
        "mm_hidden_size": 1024, "patch_size": 14, "qkv_hidden_size": 1536, "text_hidden_size": 7168,
        "vt_hidden_size": 1024, "vt_intermediate_size": 4096, "vt_num_attention_heads": 12,
        "vt_num_hidden_layers": 27}}, 2780, 104
    ),
    "minimax-m3": Published(
        {"model_type": "minimax_m3_vl", "architectures": ["MiniMaxM3SparseForConditionalGeneration"],
        "text_config": {"hidden_size": 6144, "intermediate_size": 3072, "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072, "num_hidden_layers": 60, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 200064, "max_position_embeddings": 1048576,
        "use_gemma_norm": True, "attention_output_gate": False, "rotary_dim": 64, "swiglu_alpha": 1.7,
        "swiglu_limit": 7.0, "use_qk_norm": True, "qk_norm_type": "per_head", "num_local_experts": 128,
        "num_experts_per_tok": 4, "n_shared_experts": 1, "scoring_func": "sigmoid", "use_routing_bias": True,
        "moe_layer_freq": MINIMAX_SPARSE, "tie_word_embeddings": False, "sparse_attention_config":
        {"use_sparse_attention": True, "sparse_index_dim": 128, "sparse_num_index_heads": 4,
        "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_disable_index_value": MINIMAX_SPARSE,
        "sparse_score_type": "max", "sparse_init_block": 0, "sparse_local_block": 1, "sparse_attention_freq":
        MINIMAX_SPARSE}}}, 427, 0
    ),
    "recurrentgemma-2b": Published(
        {"_block_types": ["recurrent", "recurrent", "attention"], "architectures":
        ["RecurrentGemmaForCausalLM"], "attention_bias": False, "attention_window_size": 2048, "conv1d_width":
        4, "embeddings_scale_by_sqrt_dim": True, "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size": 2560, "intermediate_size": 15360, "logits_soft_cap": 30.0, "lru_width": 2560,
        "model_type": "recurrent_gemma", "num_attention_heads": 10, "num_hidden_layers": 26,
        "num_key_value_heads": 1, "partial_rotary_factor": 0.5, "vocab_size": 256000}, 2.683
    ),
    "recurrentgemma-9b": Published(
        {"block_types": ["recurrent", "recurrent", "attention"], "attention_window_size": 2048, "conv1d_width":
        4, "head_dim": 256, "hidden_size": 4096, "intermediate_size": 24576, "lru_width": 4096, "model_type":
        "recurrent_gemma", "num_attention_heads": 16, "num_hidden_layers": 38, "num_key_value_heads": 1,
        "vocab_size": 256000}, 8.579
    ),
    "zamba2-7b": Published(
        {"model_type": "zamba2", "add_bias_linear": False, "architectures": ["Zamba2ForCausalLM"],
        "attention_head_dim": 224, "attention_hidden_size": 7168, "adapter_rank": 128, "chunk_size": 256,
        "ffn_hidden_size": 14336, "intermediate_size": 14336, "gated_linear_unit": True, "hidden_size": 3584,
        "hybrid_layer_ids": ZAMBA2_7B_BLOCKS, "layers_block_type": shared_block_layers(ZAMBA2_7B_BLOCKS, 81),
        "kv_channels": 112, "lora_rank": 128, "mamba_d_conv": 4, "mamba_d_state": 64, "mamba_expand": 2,
        "mamba_headdim": 64, "mamba_ngroups": 2, "n_mamba_heads": 112, "max_position_embeddings": 4096,
        "num_attention_heads": 32, "num_hidden_layers": 81, "num_key_value_heads": 32, "num_logits_to_keep": 1,
        "num_mem_blocks": 2, "num_query_groups": 32, "state_size": 64, "use_mem_rope": True,
        "use_shared_attention_lora": False, "use_shared_attention_adapter": False, "use_shared_block_lora":
        True, "vocab_size": 32000, "tie_word_embeddings": True, "use_conv_bias": True, "time_step_limit": None},
        7.357
    ),
    "zamba2-1.2b": Published(
        {"model_type": "zamba2", "adapter_rank": 128, "attention_head_dim": 128, "attention_hidden_size": 4096,
        "intermediate_size": 8192, "hidden_size": 2048, "hybrid_layer_ids": ZAMBA2_1B_BLOCKS,
        "layers_block_type": shared_block_layers(ZAMBA2_1B_BLOCKS, 38), "mamba_d_conv": 4, "mamba_d_state": 128,
        "mamba_expand": 2, "mamba_headdim": 64, "mamba_ngroups": 1, "n_mamba_heads": 64, "num_attention_heads":
        32, "num_hidden_layers": 38, "num_key_value_heads": 32, "num_mem_blocks": 1, "use_mem_rope": True,
        "use_shared_attention_adapter": True, "vocab_size": 32000, "max_position_embeddings": 4096}, 1.215
    ),
    "olmo-hybrid-7b": Published(
        base("olmo_hybrid", 3840, 32, 30, 30, 11008, 100352,
        layer_types=(["linear_attention"]*3+["full_attention"])*8, linear_num_key_heads=30,
        linear_num_value_heads=30, linear_key_head_dim=96, linear_value_head_dim=192, linear_conv_kernel_dim=4),
        7.4
    ),
}

WITH_TOWERS = {
    "qwen2.5-vl-7b": Published(
        base("qwen2_5_vl", 3584, 28, 28, 4, 18944, 152064, vision_config={"depth": 32, "hidden_act": "silu",
        "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3, "out_hidden_size": 3584,
        "patch_size": 14, "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": 112,
        "fullatt_block_indexes": [7, 15, 23, 31], "tokens_per_second": 2, "temporal_patch_size": 2,
        "model_type": "qwen2_5_vl"}, rope_scaling={"type": "mrope"}), 8.292
    ),
    "qwen2-vl-7b": Published(
        base("qwen2_vl", 3584, 28, 28, 4, 18944, 152064, vision_config={"depth": 32, "embed_dim": 1280,
        "mlp_ratio": 4, "num_heads": 16, "in_chans": 3, "hidden_size": 3584, "patch_size": 14,
        "spatial_merge_size": 2, "spatial_patch_size": 14, "temporal_patch_size": 2}), 8.291
    ),
    "qwen3-vl-8b": Published(
        {"model_type": "qwen3_vl", "text_config": base("qwen3_vl_text", 4096, 36, 32, 8, 12288, 151936,
        head_dim=128), "tie_word_embeddings": False, "vision_config": {"deepstack_visual_indexes": [8, 16, 24],
        "depth": 27, "hidden_size": 1152, "in_channels": 3, "intermediate_size": 4304, "model_type": "qwen3_vl",
        "num_heads": 16, "num_position_embeddings": 2304, "out_hidden_size": 4096, "patch_size": 16,
        "spatial_merge_size": 2, "temporal_patch_size": 2}}, 8.767
    ),
    "llava-1.5-7b": Published(
        {"model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "image_token_index": 32000,
        "projector_hidden_act": "gelu", "text_config": {"_name_or_path": "lmsys/vicuna-7b-v1.5",
        "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 4096, "model_type": "llama",
        "rms_norm_eps": 1e-5, "torch_dtype": "float16", "vocab_size": 32064}, "vision_config": {"hidden_size":
        1024, "image_size": 336, "intermediate_size": 4096, "model_type": "clip_vision_model",
        "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14, "projection_dim": 768,
        "vocab_size": 32000}, "vision_feature_layer": -2}, 7.063
    ),
    "pixtral-12b-hf": Published(
        {"model_type": "llava", "text_config": base("mistral", 5120, 40, 32, 8, 14336, 131072, head_dim=128,
        rope_theta=1e9, sliding_window=None), "vision_config": {"head_dim": 64, "hidden_act": "silu",
        "image_size": 1024, "is_composition": True, "model_type": "pixtral", "patch_size": 16, "rope_theta":
        10000.0, "tie_word_embeddings": False}}, 12.68
    ),
    "internvl3-8b": Published(
        {"model_type": "internvl_chat", "architectures": ["InternVLChatModel"], "llm_config": base("qwen2",
        3584, 28, 28, 4, 18944, 151674, architectures=["Qwen2ForCausalLM"]), "vision_config": {"architectures":
        ["InternVisionModel"], "hidden_size": 1024, "image_size": 448, "intermediate_size": 4096, "model_type":
        "intern_vit_6b", "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14,
        "qk_normalization": False, "qkv_bias": True}, "downsample_ratio": 0.5, "force_image_size": 448,
        "select_layer": -1, "template": "internvl2_5"}, 7.944
    ),
    "mllama-90b": Published(
        {"model_type": "mllama", "text_config": base("mllama_text_model", 8192, 100, 64, 8, 28672, 128256,
        cross_attention_layers=list(range(3, 100, 5))), "vision_config": {"attention_heads": 16, "hidden_size":
        1280, "image_size": 560, "intermediate_size": 5120, "max_num_tiles": 4, "model_type":
        "mllama_vision_model", "num_global_layers": 8, "num_hidden_layers": 32, "patch_size": 14,
        "vision_output_dim": 7680}}, 88.59
    ),
    "idefics3-8b": Published(
        {"model_type": "idefics3", "scale_factor": 2, "text_config": base("llama", 4096, 32, 32, 8, 14336,
        128259), "vision_config": {"hidden_size": 1152, "image_size": 364, "intermediate_size": 4304,
        "model_type": "idefics3", "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}}, 8.462
    ),
    "aya-vision-8b": Published(
        {"model_type": "aya_vision", "alignment_intermediate_size": 28672, "downsample_factor": 2,
        "text_config": base("cohere2", 4096, 32, 32, 8, 14336, 256000, sliding_window=4096), "vision_config":
        {"hidden_size": 1152, "image_size": 364, "intermediate_size": 4304, "model_type": "siglip_vision_model",
        "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14}}, 8.63
    ),
    "glm-4.5v": Published(
        {"model_type": "glm4v_moe", "text_config": base("glm4v_moe_text", 4096, 46, 96, 8, 10944, 151552,
        head_dim=128, attention_bias=True, moe_intermediate_size=1408, n_routed_experts=128,
        num_experts_per_tok=8, n_shared_experts=1, first_k_dense_replace=1), "vision_config": {"depth": 24,
        "hidden_act": "silu", "hidden_size": 1536, "image_size": 336, "in_channels": 3, "intermediate_size":
        10944, "model_type": "glm4v_moe", "num_heads": 12, "out_hidden_size": 4096, "patch_size": 14,
        "spatial_merge_size": 2, "temporal_patch_size": 2}}, 107.71
    ),
}
