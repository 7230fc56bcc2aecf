"""The field's words, spelled once.

Each entry names a scenario field (by its path or its last key) or a metric (by its id without the
statistic) with the label people read, one sentence of help, the symbol and which direction is better.
Forms, help pages, chart axes, reports and tests read this table; nothing else spells a label. Labels are
English msgids; the web translates them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Better = Literal["up", "down", "neutral"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    key: str
    label: str
    help: str = ""
    symbol: str = ""
    better: Better = "neutral"


def _entry(key: str, label: str, text: str = "", *, symbol: str = "", better: Better = "neutral") -> Entry:
    return Entry(key=key, label=label, help=text, symbol=symbol, better=better)


_FIELDS: Final = (
    _entry("schema_version", "Schema", "Version of the document's form."),
    _entry("name", "Name", "What this scenario is called."),
    _entry("description", "Description", "What question it answers, for whoever opens it later."),
    # sections
    _entry("hardware", "Hardware", "Chips, servers and how many of them."),
    _entry("topology", "Topology", "How the servers are wired."),
    _entry("model", "Model", "The model that is served or trained."),
    _entry(
        "workload",
        "Workload",
        "What arrives, how long it is, and what was promised. Classes of requests are written in the YAML.",
    ),
    _entry("serving", "Serving", "How the engine is configured, in vLLM's own words."),
    _entry("training", "Training", "How the training step is cut over chips."),
    _entry("reliability", "Reliability", "How often hosts fail and what a slice needs."),
    _entry("economics", "Economics", "Prices, energy and how long the gear is written off."),
    _entry("run", "Run", "The seed and the number of replications."),
    # hardware
    _entry("hardware.chip", "Chip", "The accelerator; its datasheet figures can be overridden one by one."),
    _entry("hardware.server", "Server", "The chassis: chips in it, scale-up domain, NICs, host."),
    _entry("hardware.chip_count", "Chips", "All chips that are owned, busy or idle.", symbol="N"),
    _entry(
        "hardware.pools",
        "Pools",
        "Further chips of other kinds, which serve beside the main ones or take a role of a scheduler.",
    ),
    _entry(
        "hardware.calibration", "Calibration", "Whose measurements set what the chip reaches of its peaks."
    ),
    _entry("hardware.chip_overrides", "Chip overrides", "Figures that differ from the datasheet."),
    _entry(
        "bf16_flop_per_s", "BF16 dense", "Peak dense 16-bit matrix rate; a multiply-accumulate is 2 FLOP."
    ),
    _entry("fp8_flop_per_s", "FP8 dense", "Peak dense 8-bit floating point matrix rate."),
    _entry("int8_flop_per_s", "INT8 dense", "Peak dense 8-bit integer matrix rate."),
    _entry("fp4_flop_per_s", "FP4 dense", "Peak dense 4-bit floating point matrix rate."),
    _entry("hbm_bytes_per_s", "HBM bandwidth", "Datasheet bandwidth of the chip's main memory."),
    _entry("hbm_bytes", "HBM capacity", "Datasheet size of the chip's main memory."),
    _entry("hbm_visible_bytes", "HBM visible", "What the driver reports; engines budget with this."),
    _entry("l2_bytes", "L2 cache", "Last-level cache on the chip."),
    _entry("sram_bytes_per_core", "SRAM per core", "Shared memory of one SM or core."),
    _entry("core_count", "Cores", "SMs, compute units or tensor cores."),
    _entry("scaleup_bytes_per_s", "Scale-up per chip", "NVLink, xGMI or ICI bandwidth, per direction."),
    _entry("pcie_bytes_per_s", "PCIe per chip", "Host link bandwidth, per direction."),
    _entry("tdp_w", "TDP", "Thermal design power of one chip."),
    # topology
    _entry("topology.kind", "Fabric", "How switches are arranged above the servers."),
    _entry("radix", "Switch ports", "Ports of one switch.", symbol="k"),
    _entry("tiers", "Tiers", "Switch tiers; auto takes the fewest that hold the chips.", symbol="L"),
    _entry(
        "oversubscription_ratio",
        "Oversubscription",
        "Downlink over uplink bandwidth at the leaf; 1 is non-blocking.",
    ),
    _entry(
        "hb_domain_size", "Scale-up domain", "Chips that reach each other without the fabric.", symbol="K"
    ),
    _entry("transceiver_convention", "Transceiver count", "Which link ends carry an optical module."),
    _entry("price_book", "Price book", "Dated, sourced prices."),
    _entry(
        "topology.routing",
        "Routing",
        "Which of the equally short paths a flow takes; auto is even ECMP over switches, dimension order on a torus.",
    ),
    _entry(
        "topology.class_sharing",
        "Sharing of classes",
        "How core, inter-domain and management traffic share a link: alike, by strict priority, or by weight.",
    ),
    _entry(
        "topology.class_weight_ratio",
        "Weights of classes",
        "Of core, inter-domain and management traffic, where classes are weighted.",
    ),
    _entry(
        "topology.degraded",
        "Degraded parts",
        "Links and switches that have lost capacity; routes avoid dead ones. Written in the YAML.",
    ),
    _entry(
        "topology.degraded.link", "Link", "Its two ends, such as leaf 3 → spine 1; both directions are meant."
    ),
    _entry("topology.degraded.switch", "Switch", "Such as spine 2; all its links are meant."),
    _entry("topology.degraded.capacity_fraction", "Capacity left", "Share of its capacity; 0 is dead."),
    _entry("topology.shape", "Shape", "Chips along each dimension of the torus."),
    _entry("topology.dimensions", "Dimensions", "Of the most cubic shape, where none is given."),
    _entry("topology.ocs_usable_ports", "Ports per OCS", "Usable ports of one optical switch."),
    _entry("topology.p", "Endpoints per switch", "Ports of a switch that go to endpoints.", symbol="p"),
    _entry("topology.a", "Switches per group", "Joined all to all by local links; auto is 2p.", symbol="a"),
    _entry(
        "topology.twisted",
        "Twisted",
        "Links around a short dimension land shifted; auto: where the shape allows.",
    ),
    _entry("topology.generation", "Generation", "How many cubes a pod and one of its slices may have."),
    _entry("topology.planes", "Planes", "Equal networks over which each NIC's rate is split."),
    _entry("topology.q", "Order", "2q² switches; the graphs are known where q is a prime power.", symbol="q"),
    _entry("topology.sizes", "Sizes", "Switches along each dimension, joined all to all on each line."),
    _entry(
        "topology.links_per_pair", "Links per pair", "Parallel links of two switches of a line.", symbol="K"
    ),
    _entry("topology.h", "Global links per switch", "To other groups; auto is p.", symbol="h"),
    _entry(
        "topology.g", "Groups", "At most a × h + 1; auto takes the fewest that hold the chips.", symbol="g"
    ),
    # model
    _entry("model.name", "Model name", "A model of the catalog."),
    _entry("model.config", "config.json", "A Hugging Face config.json, instead of a catalog name."),
    # workload
    _entry(
        "workload.kind",
        "Kind of work",
        "Serving requests, training a model, or none: the fabric and reliability alone.",
    ),
    _entry("workload.arrivals", "Arrivals", "How requests arrive."),
    _entry("workload.lengths", "Lengths", "How long prompts and answers are."),
    _entry("workload.slo", "SLO", "What was promised; both times must be met."),
    _entry(
        "workload.classes",
        "Classes of requests",
        "Shares of the requests with lengths and an SLO of their own; written in the scenario's YAML.",
    ),
    _entry(
        "workload.sessions",
        "Sessions",
        "Conversations of several turns: the arrivals are those of first turns, each later one comes some time after "
        "the answer before it, and its prompt is all that was said.",
    ),
    _entry(
        "workload.sessions.turns_mean",
        "Turns",
        "Turns of a session in the mean; prompts grow from turn to turn. The number of requests counts turns.",
    ),
    _entry(
        "workload.sessions.turns_law",
        "Law of turns",
        "geometric: the chance to go on is the same after each answer; constant: all sessions are as long.",
    ),
    _entry(
        "workload.sessions.think_time_mean_s",
        "Think time",
        "From the end of an answer to the user's next message, in the mean.",
        symbol="Z",
    ),
    _entry(
        "workload.sessions.think_time_cv",
        "Think time, spread",
        "Coefficient of variation of the think time; 1 is exponential, 0 constant.",
    ),
    _entry(
        "workload.sessions.shared_system_prompt_tokens",
        "System prompt",
        "Tokens that every prompt begins with, the same in all sessions.",
    ),
    _entry("workload.arrivals.kind", "Arrivals", "How requests arrive."),
    _entry("workload.arrivals.request_per_s", "Request rate", "Mean offered load.", symbol="λ"),
    _entry(
        "workload.arrivals.concurrency",
        "Users",
        "Requests kept in flight: each finished one admits the next.",
    ),
    _entry(
        "workload.arrivals.cv",
        "Burstiness",
        "Coefficient of variation of the gaps; 1 is Poisson. Azure's traces of 2023: 1.1 conversation, 13 code.",
    ),
    _entry(
        "workload.arrivals.start_request_per_s", "Rate at first", "Mean offered load when the ramp begins."
    ),
    _entry(
        "workload.arrivals.end_request_per_s",
        "Rate at last",
        "Mean offered load from the end of the ramp on.",
    ),
    _entry("workload.arrivals.ramp_s", "Ramp", "Time from the first rate to the last."),
    _entry(
        "workload.arrivals.peak_ratio", "Peak", "Highest rate over mean rate; 1 is flat, 2 falls to nothing."
    ),
    _entry("workload.arrivals.name", "Trace", "Which real requests the rhythm was fitted to."),
    _entry("workload.arrivals.period_s", "Period", "Time after which the rate takes the same course again."),
    _entry("workload.arrivals.path", "Trace file", "A request trace on disk (command line only)."),
    _entry("workload.arrivals.trace", "Uploaded trace", "Identifier of an uploaded request trace."),
    _entry("workload.arrivals.format", "Trace format", "mooncake, azure, burstgpt or csv."),
    _entry("workload.arrivals.columns", "Columns", "Which column holds what, for a csv trace."),
    _entry("columns.timestamp_s", "Column of instants", "Seconds since any origin."),
    _entry("columns.input_tokens", "Column of inputs", "Prompt tokens."),
    _entry("columns.output_tokens", "Column of outputs", "Generated tokens."),
    _entry("workload.arrivals.time_scale", "Time scale", "2 plays the trace at half speed."),
    _entry("workload.arrivals.limit", "Rows", "Use at most this many rows."),
    _entry("workload.arrivals.window", "Window", "Start and end second of the trace to use."),
    _entry("workload.lengths.kind", "Lengths", "How long prompts and answers are."),
    _entry("workload.lengths.name", "Trace", "Which real requests the lengths were fitted to."),
    _entry("workload.lengths.input_tokens", "Input", "Prompt tokens."),
    _entry("workload.lengths.output_tokens", "Output", "Generated tokens."),
    _entry("workload.lengths.input_mean_tokens", "Input, mean", "Mean prompt length."),
    _entry("workload.lengths.input_cv", "Input, spread", "Standard deviation over mean."),
    _entry("workload.lengths.output_mean_tokens", "Output, mean", "Mean answer length."),
    _entry("workload.lengths.output_cv", "Output, spread", "Standard deviation over mean."),
    _entry("workload.request_count", "Requests", "How many requests are simulated."),
    _entry("workload.slo.ttft_s", "SLO TTFT", "First token must come within this time."),
    _entry("workload.slo.tpot_s", "SLO TPOT", "Each further token must come within this time on average."),
    _entry("workload.slo.attainment_fraction", "SLO share", "Share of requests that must meet both."),
    # serving
    _entry("serving.parallelism", "Parallelism", "How one replica is cut over chips."),
    _entry("serving.scheduler", "Scheduler", "How prefill and decode share an iteration."),
    _entry("serving.router", "Router", "Which replica takes a request."),
    _entry("serving.kv", "KV cache", "Keys and values of the tokens so far."),
    _entry("serving.attention", "Attention", "The kernel that computes it."),
    _entry("serving.engine", "Engine", "Serving engine and version; sets its memory and overhead constants."),
    _entry("serving.max_model_len", "Max model length", "Longest prompt plus answer that is admitted."),
    _entry(
        "serving.num_gpu_blocks_override",
        "KV blocks override",
        "Use this many KV blocks instead of the budget's.",
    ),
    _entry(
        "serving.kv_cache_memory_bytes",
        "KV memory override",
        "Use this much memory per chip for the KV cache.",
    ),
    _entry("tp", "Tensor parallel", "Chips that share each layer.", symbol="TP"),
    _entry("pp", "Pipeline parallel", "Stages of consecutive layers.", symbol="PP"),
    _entry("dp", "Data parallel", "Replicas in training.", symbol="DP"),
    _entry("ep", "Expert parallel", "Chips that share the experts.", symbol="EP"),
    _entry(
        "serving.parallelism.dp",
        "Data parallel",
        "Attention ranks of one replica, each with its own sequences and KV; they share the experts of a model that "
        "has some.",
        symbol="DP",
    ),
    _entry(
        "serving.parallelism.ep",
        "Expert parallel",
        "Groups of chips that hold whole experts; 1 slices every expert over all chips of a replica.",
        symbol="EP",
    ),
    _entry(
        "expert_imbalance_ratio",
        "Expert imbalance",
        "Load of the busiest expert rank over the mean; on 16 ranks 1.01 was measured with a load balancer (EPLB), "
        "1.07 without.",
    ),
    _entry("cp", "Context parallel", "Chips that share one sequence.", symbol="CP"),
    _entry("serving.replica_count", "Replicas", "Copies of the model; auto uses all chips."),
    _entry("serving.scheduler.kind", "Scheduler", "How prefill and decode share an iteration."),
    _entry("serving.scheduler.queue", "Waiting line", "Who is admitted first of those who wait."),
    _entry(
        "serving.scheduler.prefill.parallelism.tp",
        "Prefill TP",
        "Chips that share each layer of a prefill replica; empty: as above.",
    ),
    _entry(
        "serving.scheduler.prefill.parallelism.pp",
        "Prefill PP",
        "Stages of a prefill replica.",
    ),
    _entry(
        "serving.scheduler.prefill.parallelism.dp",
        "Prefill DP",
        "Attention ranks of a prefill replica.",
    ),
    _entry(
        "serving.scheduler.prefill.parallelism.ep",
        "Prefill EP",
        "Groups of chips of a prefill replica that hold whole experts.",
    ),
    _entry(
        "serving.scheduler.prefill.parallelism.cp",
        "Prefill CP",
        "Chips of a prefill replica that share one sequence.",
    ),
    _entry(
        "serving.scheduler.prefill.parallelism.expert_imbalance_ratio",
        "Prefill imbalance",
        "Load of the busiest expert rank of a prefill replica over the mean.",
    ),
    _entry(
        "serving.scheduler.prefill.pool",
        "Prefill chips",
        "The pool of hardware.pools that prefills; main: the chips above.",
    ),
    _entry(
        "serving.scheduler.prefill.replica_count",
        "Prefill replicas",
        "Replicas that only prefill; auto deals the chips out so that the lesser pool carries most.",
    ),
    _entry(
        "serving.scheduler.prefill.max_num_seqs",
        "Prefill running, max",
        "Sequences in one iteration of a prefill replica at most.",
    ),
    _entry(
        "serving.scheduler.prefill.max_num_batched_tokens",
        "Prefill token budget",
        "Tokens in one iteration of a prefill replica at most.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.tp",
        "Decode TP",
        "Chips that share each layer of a decode replica; empty: as above.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.pp",
        "Decode PP",
        "Stages of a decode replica.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.dp",
        "Decode DP",
        "Attention ranks of a decode replica.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.ep",
        "Decode EP",
        "Groups of chips of a decode replica that hold whole experts.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.cp",
        "Decode CP",
        "Chips of a decode replica that share one sequence.",
    ),
    _entry(
        "serving.scheduler.decode.parallelism.expert_imbalance_ratio",
        "Decode imbalance",
        "Load of the busiest expert rank of a decode replica over the mean.",
    ),
    _entry(
        "serving.scheduler.decode.pool",
        "Decode chips",
        "The pool of hardware.pools that decodes; main: the chips above.",
    ),
    _entry(
        "serving.scheduler.decode.replica_count",
        "Decode replicas",
        "Replicas that only decode; auto deals the chips out so that the lesser pool carries most.",
    ),
    _entry(
        "serving.scheduler.decode.max_num_seqs",
        "Decode running, max",
        "Sequences in one iteration of a decode replica at most.",
    ),
    _entry(
        "serving.scheduler.decode.max_num_batched_tokens",
        "Decode token budget",
        "Tokens in one iteration of a decode replica at most.",
    ),
    _entry("serving.scheduler.kv_link", "KV link", "What KV moves over from prefill to decode."),
    _entry(
        "serving.scheduler.kv_link_bytes_per_s",
        "KV link bandwidth",
        "Of one chip; auto is that of its scale-out or scale-up link.",
    ),
    _entry(
        "serving.scheduler.kv_link_latency_s",
        "KV link latency",
        "Of one transfer, the handshake included.",
    ),
    _entry(
        "serving.scheduler.layerwise",
        "KV by layers",
        "Send each layer's KV as it is computed, while the prompt goes on.",
    ),
    _entry("prediction_cv", "Prediction error", "Spread of the predicted answer length around the true one."),
    _entry("max_num_seqs", "Running, max", "Sequences in one iteration at most."),
    _entry("max_num_batched_tokens", "Token budget", "Tokens in one iteration at most."),
    _entry(
        "long_prefill_token_threshold",
        "Chunk cap",
        "Tokens of one prompt in an iteration at most; 0 sets no cap.",
    ),
    _entry(
        "serving.router.kind",
        "Router",
        "Which replica takes a request: the next in turn, one at random, the one with the fewest requests or the "
        "least KV memory in use, the better of two at random, the one that holds the prompt's prefix, or the one "
        "of the session's first turn.",
    ),
    _entry(
        "serving.router.imbalance_ratio",
        "Imbalance, max",
        "A replica with more than this many times the mean load (plus one) is passed over, whatever prefix it holds.",
    ),
    _entry("serving.admission", "Admission", "Whom a replica lets wait."),
    _entry(
        "serving.admission.max_queue_length",
        "Queue, max",
        "Requests that may wait in line at a replica; further ones are refused at once. Empty: no bound.",
    ),
    _entry("serving.kv.allocator", "KV allocator", "How KV memory is handed out."),
    _entry("serving.kv.block_size", "KV block", "Tokens in one KV block."),
    _entry("serving.kv.dtype", "KV format", "Number format of the KV cache; auto follows the model."),
    _entry(
        "serving.kv.gpu_memory_utilization",
        "Memory utilisation",
        "Share of visible memory that the engine may take.",
    ),
    _entry(
        "serving.kv.enable_prefix_caching", "Prefix cache", "Keep KV blocks of finished prompts for reuse."
    ),
    _entry(
        "serving.kv.preemption",
        "On preemption",
        "recompute throws the KV of a sequence away; swap sends it to the first tier of serving.kv.offload with room, "
        "without one to the host's memory.",
    ),
    _entry(
        "serving.kv.offload",
        "KV offload",
        "Tiers that take swapped sequences and evicted prefixes, nearest first; a list, so written in YAML. Figures "
        "are those of one chip.",
    ),
    _entry("serving.weights_dtype", "Weights", "Number format of the weights."),
    _entry(
        "serving.speculative", "Speculative decoding", "A cheap draft proposes tokens that one step verifies."
    ),
    _entry(
        "serving.speculative.kind",
        "Speculative decoding",
        "Who drafts tokens that one step verifies together: a look-up in the prompt (ngram), a head on the model "
        "(eagle, eagle3, mtp), or a smaller model.",
    ),
    _entry(
        "serving.speculative.num_speculative_tokens",
        "Draft tokens",
        "Tokens that are drafted for each sequence in an iteration.",
        symbol="k",
    ),
    _entry(
        "serving.speculative.acceptance_rate",
        "Acceptance rate",
        "Probability that a draft token is accepted where all before it were. vLLM's log prints the mean acceptance "
        "length, which is 1 + a + a² + … over the draft tokens.",
        symbol="a",
    ),
    _entry(
        "serving.speculative.draft_cost_fraction",
        "Cost of a draft",
        "One pass of the head as a share of a decode step; auto takes one layer of the model and its LM head.",
    ),
    _entry(
        "serving.speculative.model",
        "Draft model",
        "A smaller model with the same vocabulary, on the same chips.",
    ),
    _entry("serving.autoscaling", "Autoscaling", "Replicas are started and given up as the load goes."),
    _entry(
        "serving.autoscaling.kind",
        "Autoscaling",
        "What the number of replicas follows: requests outstanding or KV blocks in use, by the rule of a Kubernetes "
        "Horizontal Pod Autoscaler. Owned chips cost the same whether a replica runs on them or not.",
    ),
    _entry(
        "serving.autoscaling.target",
        "Target of a replica",
        "What one replica is to carry: requests that run or wait, or the share of its KV blocks in use.",
    ),
    _entry("serving.autoscaling.min_replica_count", "Replicas, fewest", "Kept ready whatever the load."),
    _entry(
        "serving.autoscaling.max_replica_count",
        "Replicas, most",
        "Started at most; auto is as many as the owned chips hold.",
    ),
    _entry("serving.autoscaling.interval_s", "Time between looks", "How often the load is looked at."),
    _entry(
        "serving.autoscaling.startup_s",
        "Start of a replica",
        "From the decision until it takes requests: the machine, the weights, the compilation.",
    ),
    _entry(
        "serving.autoscaling.scale_down_stabilization_s",
        "Wait before giving up",
        "A replica is given up when no look within this time wanted it.",
    ),
    _entry(
        "serving.attention.kind",
        "Attention kernel",
        "flash tiles through SRAM; naive writes the scores to HBM.",
    ),
    _entry(
        "serving.kernels",
        "Kernel times",
        "fitted forms, or measured tables of aiconfigurator-core, which has to be installed.",
    ),
    # training
    _entry("training.parallelism", "Parallelism", "How the step is cut over chips."),
    _entry(
        "training.parallelism.dp",
        "Data parallel",
        "Replicas that share a batch; auto uses all chips.",
        symbol="DP",
    ),
    _entry("training.sequence_length", "Sequence", "Tokens of one training sequence."),
    _entry("training.global_batch_tokens", "Global batch", "Tokens of one optimizer step."),
    _entry("training.micro_batch_size", "Micro-batch", "Sequences that pass the pipeline together."),
    _entry(
        "training.virtual_stages", "Virtual stages", "Pieces of a pipeline stage, interleaved.", symbol="v"
    ),
    _entry(
        "training.zero_stage", "ZeRO stage", "What data parallel ranks share: optimizer, gradients, weights."
    ),
    _entry("training.recompute", "Recompute", "Activations that are computed again instead of kept."),
    _entry(
        "training.sequence_parallel", "Sequence parallel", "Norms are cut over the tensor parallel ranks."
    ),
    _entry("training.overlap", "Overlap", "Collectives that run behind the kernels."),
    _entry(
        "overlap.dp", "Overlap data parallel", "Gradients and weights move behind the last backward pass."
    ),
    _entry("overlap.tp", "Overlap tensor parallel", "Layer collectives move behind the matrix products."),
    _entry("overlap.ep", "Overlap expert parallel", "Tokens move behind another micro-batch's kernels."),
    _entry("training.dispatcher", "Dispatcher", "How tokens reach their experts on other chips."),
    _entry(
        "training.cuda_graphs",
        "CUDA graphs",
        "What the host launches as one: nothing, parts of a layer, or a whole iteration.",
    ),
    _entry(
        "training.multi_token_prediction",
        "Multi-token prediction",
        "The model's extra layers that predict further tokens are trained too.",
    ),
    _entry("training.lora", "LoRA", "Adapters are trained and all weights beside them are frozen."),
    _entry(
        "lora.rank",
        "Adapter rank",
        "Width between the two thin matrices of an adapter; 0 trains all weights.",
        symbol="r",
    ),
    _entry("lora.targets", "Adapted matrices", "Which matrices have adapters."),
    _entry("training.total_tokens", "Tokens of the run", "Tokens that the whole training reads."),
    _entry("training.dtype", "Training format", "Number format of the matrix products."),
    _entry("training.stack", "Training stack", "The software whose efficiency is taken."),
    # reliability
    _entry("reliability.checkpoint_write_s", "Checkpoint write", "Time to write one checkpoint."),
    _entry("reliability.restart_s", "Restart", "Time to detect, replace, reload and warm up."),
    _entry(
        "host_availability_fraction", "Host availability", "Share of time that one host is up.", symbol="A"
    ),
    _entry("reliability.slice_chips", "Slice", "Chips that one job needs, all healthy."),
    _entry("reliability.failures", "Failure rates", "A published catalogue of failures per component."),
    _entry("reliability.spares", "Spares", "Cubes or servers held back to take the place of failed ones."),
    _entry(
        "checkpoint_interval_s",
        "Checkpoint interval",
        "Time between checkpoints; auto takes Young's optimum.",
    ),
    _entry(
        "failures_per_thousand_node_days_ratio",
        "Own failure rate",
        "Failures of one server in 1,000 days; auto takes the published rate.",
    ),
    _entry(
        "reliability.mttr_s",
        "Time to repair",
        "Mean, of one server; host availability then follows from it and the failure rate.",
    ),
    _entry(
        "reliability.bring_up_s",
        "Torus bring-up",
        "Time to train the links and set the routes of a slice after its circuits moved.",
    ),
    _entry(
        "reliability.jobs",
        "Jobs",
        "Slices that the optical switches join, by chips or shape; written in the YAML.",
    ),
    _entry("reliability.life", "Cluster life", "A simulated life of the cluster: failures, repairs, jobs."),
    _entry("reliability.life.duration_s", "Duration", "How long the cluster lives."),
    _entry(
        "reliability.life.allocation",
        "Allocation",
        "What a job is given: any healthy cubes that optical switches join (ocs), an aligned place of a fixed torus "
        "(static), or any healthy servers; auto takes the topology's.",
    ),
    _entry(
        "reliability.life.repair_cv",
        "Spread of repairs",
        "Coefficient of variation of repair times; 0: all take the mean.",
    ),
    _entry(
        "reliability.life.crew_count",
        "Repair crews",
        "Repairs at a time; none: as many as there are failures.",
    ),
    _entry(
        "reliability.life.restart_scope",
        "Restart scope",
        "What restarts after a failure: all hosts of the job, or the failed part alone.",
    ),
    _entry(
        "reliability.life.host_restart_s",
        "Restart of a host",
        "Where only the failed part restarts; the default is an assumption.",
    ),
    _entry(
        "reliability.life.recover_from",
        "State comes from",
        "The last checkpoint, or a peer that holds a copy: then nothing is done again.",
    ),
    _entry(
        "reliability.life.swap_s",
        "Hot swap",
        "Time to bring a healthy unit in for a failed one; the default is an assumption.",
    ),
    _entry(
        "reliability.life.fault_tolerant_routing",
        "Fault-tolerant routing",
        "Jobs go on, slower, where a link, a rail or an optical switch has failed.",
    ),
    _entry(
        "reliability.life.link_slowdown_ratio",
        "Slowdown by a failed link",
        "Time of a step with a failed link over time without; the default is an assumption.",
    ),
    _entry(
        "reliability.life.chip_mtbf_s",
        "Time between chip failures",
        "Of one chip; none: the rate of its server covers it.",
    ),
    _entry(
        "reliability.life.link_mtbf_s",
        "Time between link failures",
        "Of one link; auto: published for tori, else covered by the rate of servers.",
    ),
    _entry(
        "reliability.life.switch_mtbf_s",
        "Time between switch failures",
        "Of one leaf switch; auto: published.",
    ),
    _entry(
        "reliability.life.ocs_mtbf_s",
        "Time between optical switch failures",
        "Of one optical switch; auto: published.",
    ),
    _entry(
        "reliability.life.maintenance_period_s",
        "Maintenance period",
        "From one round of all hosts to the next; none: there is none.",
    ),
    _entry(
        "reliability.life.maintenance_window_s",
        "Maintenance window",
        "How long a share of the hosts is down.",
    ),
    _entry(
        "reliability.life.maintenance_fraction",
        "Hosts at a time",
        "Share of hosts that is served at once.",
    ),
    _entry(
        "reliability.life.kind",
        "Cluster life",
        "Simulate it always full of slices, or with a queue of jobs that arrive and end.",
    ),
    _entry("reliability.life.interarrival_s", "Time between jobs", "Mean time from one arrival to the next."),
    _entry("reliability.life.work_s", "Work of a job", "Mean time that it runs when nothing fails."),
    _entry("reliability.life.work_cv", "Spread of work", "Coefficient of variation of the work of jobs."),
    _entry(
        "reliability.life.slice_chips",
        "Slices of jobs",
        "Chips that a job needs; each size is as likely.",
    ),
    _entry(
        "reliability.shocks",
        "Shocks",
        'A timeline of failures, drains and bursts, such as [{"kind": "host_failure", "at_s": 60}].',
    ),
    _entry("reliability.abilities", "Abilities", "What can be re-arranged after a shock, each on or off."),
    _entry("abilities.physical", "Re-wire", "A spare takes the place of what failed."),
    _entry(
        "abilities.data",
        "Keep state elsewhere",
        "Who was interrupted brings its KV back instead of computing it; a training job takes its state from another "
        "server's memory instead of its last checkpoint.",
    ),
    _entry(
        "abilities.task",
        "Re-route",
        "Requests are sent elsewhere while a replica is down, drained or slow, and replicas change between prefill and "
        "decode; a training job goes on with fewer.",
    ),
    _entry("abilities.reconfiguration_s", "Until a spare serves", "Time to switch a spare in and load it."),
    # economics
    _entry(
        "economics.price_ratio",
        "Price level",
        "What is paid over what the price book says of chips, servers, NICs and the building; 0.8 is a discount of "
        "20 %.",
    ),
    _entry(
        "economics.network_price_ratio",
        "Price level of the fabric",
        "What is paid over what the fabric's price book says of switches, optics and fibres.",
    ),
    _entry("electricity_usd_per_kwh", "Electricity", "Price of energy at the meter."),
    _entry("pue", "PUE", "Facility power over IT power."),
    _entry("economics.depreciation_years", "Depreciation", "Years over which the gear is written off."),
    _entry(
        "economics.software_usd_per_chip_year",
        "Software per chip",
        "Licences, support and porting of a year, per chip.",
    ),
    _entry(
        "economics.operations_usd_per_year",
        "Operations",
        "Staff and contracts of a year; part of the running cost.",
    ),
    _entry(
        "economics.cloud_usd_per_hour",
        "Rent of a chip",
        "What a chip of this kind costs per hour in a cloud; where nothing is given, what the price book says.",
    ),
    _entry(
        "economics.api_input_usd_per_million_tokens",
        "API, input",
        "What an API asks for a million input tokens of this model; where nothing is given, what the price book says.",
    ),
    _entry(
        "economics.api_output_usd_per_million_tokens",
        "API, output",
        "What an API asks for a million output tokens of this model; where nothing is given, what the price book says.",
    ),
    _entry("economics.labour_usd_per_hour", "Labour", "Cost of one engineer hour."),
    _entry(
        "economics.minutes_per_suspect", "Minutes per suspect", "Time to clear one suspect after a fault."
    ),
    _entry(
        "economics.connection_load_threshold_fraction",
        "Idle link threshold",
        "Links loaded below this count as connection tax.",
    ),
    _entry(
        "economics.alternatives",
        "Alternatives",
        "Scenarios that you may have to move to, with probabilities.",
    ),
    _entry("run.seed", "Seed", "Same seed, same arrivals and lengths."),
    _entry(
        "run.replications",
        "Replications",
        "Seeds that are run; results are their means, with an interval for each.",
    ),
)

_METRICS: Final = (
    _entry("model.parameter_count", "Parameters", "All weights of the model."),
    _entry("model.active_parameter_count", "Active parameters", "Weights that one token touches."),
    _entry(
        "model.kv_bytes_per_token",
        "KV per token",
        "Cache that one token leaves in all layers, 16 bit unless set.",
    ),
    _entry("model.weight_bytes", "Weights", "All weights in their number format."),
    _entry("memory.weight_bytes_per_chip", "Weights per chip", "Largest rank."),
    _entry(
        "memory.kv_bytes_per_chip",
        "KV memory per chip",
        "What the budget leaves for the KV cache.",
        better="up",
    ),
    _entry("memory.kv_token_capacity", "KV tokens", "Tokens that one replica can hold.", better="up"),
    _entry(
        "memory.kv_block_count", "KV blocks", "Blocks of one replica (minimum over its ranks).", better="up"
    ),
    _entry(
        "memory.max_concurrency_at_max_len",
        "Concurrency at full length",
        "Requests of max_model_len that fit at once.",
        better="up",
    ),
    _entry(
        "memory.swap_s", "Bring a prompt back", "KV of the mean prompt from a tier, each chip its own share."
    ),
    _entry(
        "memory.recompute_s",
        "Compute a prompt again",
        "One prefill of the mean prompt, when nothing else runs.",
    ),
    _entry(
        "memory.swap_to_recompute_ratio",
        "Bring back ÷ compute again",
        "Below 1, bringing a prompt's KV back is quicker than computing it again.",
        better="down",
    ),
    _entry(
        "memory.break_even_tokens",
        "Better brought back from",
        "The length from which on every prompt is quicker to bring back than to compute.",
    ),
    _entry("memory.tier_bytes_per_s", "Bandwidth of the tier per chip"),
    _entry("memory.tier_capacity_tokens", "Tokens that the tier holds", "KV of so many tokens per chip."),
    _entry(
        "memory.left_bytes_per_chip",
        "Left free per chip",
        "Visible memory that neither the engine nor the cache takes.",
    ),
    _entry("memory.state_bytes_per_chip", "States per chip", "Recurrent states of all running sequences."),
    _entry(
        "memory.paged_bytes_per_chip", "KV blocks per chip", "What states leave for KV blocks.", better="up"
    ),
    _entry(
        "memory.kv_internal_waste_fraction",
        "Internal waste",
        "Share of allocated KV memory that no token uses.",
        better="down",
    ),
    _entry(
        "memory.kv_reserved_waste_fraction",
        "Reserved for later",
        "Share of KV memory that is promised to tokens still to come.",
        better="down",
    ),
    _entry(
        "memory.kv_external_waste_fraction",
        "External waste",
        "Share of KV memory lost to rounding, or free and of no use to the first in line.",
        better="down",
    ),
    _entry(
        "memory.kv_useful_fraction",
        "Useful KV",
        "Share of allocated KV memory that holds tokens.",
        better="up",
    ),
    _entry(
        "memory.prefix_hit_fraction",
        "Prefix hits",
        "Share of prompt tokens whose KV blocks were resident, so that they were not computed again.",
        better="up",
    ),
    _entry(
        "memory.prefix_hit_fraction.host_dram",
        "Prefix hits in host memory",
        "Share of prompt tokens that were brought back from there.",
    ),
    _entry(
        "memory.prefix_hit_fraction.nvme",
        "Prefix hits on NVMe drives",
        "Share of prompt tokens that were brought back from there.",
    ),
    _entry(
        "memory.prefix_hit_fraction.remote",
        "Prefix hits in remote memory",
        "Share of prompt tokens that were brought back from there.",
    ),
    _entry(
        "memory.swap_count",
        "Swaps",
        "Preempted sequences whose KV a tier kept, so that they computed none of it again.",
    ),
    _entry(
        "compute.decode_step_s",
        "Decode step",
        "One iteration in which every running sequence gains a token, at the mean batch.",
        better="down",
    ),
    _entry(
        "compute.prefill_step_s",
        "Prefill step",
        "One iteration that reads a mean prompt, nothing else.",
        better="down",
    ),
    _entry("compute.roofline_bound", "Bound by", "What the decode step waits for most."),
    _entry(
        "compute.lockstep_step_ratio",
        "Steps in lockstep",
        "How much longer steps last at most where data parallel ranks wait for each other's prompts; no result has it.",
        better="down",
    ),
    _entry(
        "compute.random_expert_imbalance_ratio",
        "Expert imbalance by chance",
        "Busiest expert rank over the mean in a decode step, expected where no expert is a favourite.",
        better="down",
    ),
    _entry(
        "compute.moved_bytes_per_output_token",
        "Bytes per output token",
        "Traffic per generated token.",
        better="down",
    ),
    _entry(
        "compute.moved_per_output_token_s",
        "Time moving bytes, per output token",
        "At the full bandwidth of the tier.",
        better="down",
    ),
    _entry(
        "compute.moved_joule_per_output_token",
        "Energy moving bytes, per output token",
        "Bytes of each tier times an assumed energy per byte, off-chip only.",
        better="down",
    ),
    _entry(
        "serving.ttft_s",
        "TTFT",
        "Time to first token: from arrival to the first generated token.",
        better="down",
    ),
    _entry(
        "serving.tpot_s",
        "TPOT",
        "Time per output token after the first: (end − first token) ÷ (output − 1).",
        better="down",
    ),
    _entry(
        "serving.estimate.ttft_s",
        "TTFT by queueing",
        "Mean time to the first token by a closed form, to hold against the simulated one.",
        better="down",
    ),
    _entry(
        "serving.estimate.tpot_s",
        "TPOT by queueing",
        "Mean time per further token by a closed form, to hold against the simulated one.",
        better="down",
    ),
    _entry("serving.itl_s", "ITL", "Gap between two tokens of a request.", better="down"),
    _entry(
        "serving.speculative.expected_tokens_per_step",
        "Tokens per iteration, expected",
        "Accepted draft tokens and one more, in the mean: 1 + a + a² + … over the draft tokens.",
        better="up",
    ),
    _entry(
        "serving.speculative.tokens_per_step",
        "Tokens per iteration",
        "That a sequence got of an iteration with drafts, in the simulation; the end of an answer wastes some.",
        better="up",
    ),
    _entry(
        "serving.speculative.iteration_s",
        "Iteration with drafts",
        "One step that verifies the draft tokens of every sequence, and the passes that draft them.",
        better="down",
    ),
    _entry(
        "serving.speculative.tpot_s",
        "Time per token with drafts",
        "The iteration over the tokens that it gives, prompts aside.",
        better="down",
    ),
    _entry(
        "serving.speculative.speedup_ratio",
        "Speed-up of drafts",
        "Tokens of decoding per second with drafts ÷ without, at the mean batch.",
        better="up",
    ),
    _entry(
        "serving.speculative.break_even_fraction",
        "Break-even acceptance",
        "The acceptance rate at which drafts begin to pay at the mean batch.",
        better="down",
    ),
    _entry(
        "serving.autoscaling.ready_replica_count",
        "Replicas ready",
        "That take requests, over simulated time.",
    ),
    _entry(
        "serving.autoscaling.replica_s",
        "Replica-seconds",
        "Time that replicas are starting, ready or finishing what they have, summed over them.",
        better="down",
    ),
    _entry(
        "serving.autoscaling.used_fraction",
        "Share of replica time used",
        "Of the time of as many replicas as there may be, what they are starting, ready or finishing.",
        better="down",
    ),
    _entry("serving.autoscaling.scale_up_count", "Replicas started", "Over the run."),
    _entry("serving.autoscaling.scale_down_count", "Replicas given up", "Over the run."),
    _entry("serving.e2e_s", "End to end", "From arrival to the last token.", better="down"),
    _entry(
        "serving.queue_s",
        "Queue",
        "From arrival to the first iteration that serves the request.",
        better="down",
    ),
    _entry(
        "serving.kv_wait_s",
        "Wait for room in decode",
        "From the end of a prompt until a decode replica has reserved memory for its KV.",
        better="down",
    ),
    _entry(
        "serving.kv_transfer_s",
        "KV transfer",
        "From that reservation until the KV has landed, waiting for both ends of the link included.",
        better="down",
    ),
    _entry(
        "serving.kv_transfer_alone_s",
        "KV transfer, alone",
        "KV of a mean prompt over an idle link.",
        better="down",
    ),
    _entry(
        "serving.prefill_busy_fraction",
        "Prefill busy",
        "Share of time in which prefill replicas run an iteration.",
    ),
    _entry(
        "serving.decode_busy_fraction",
        "Decode busy",
        "Share of time in which decode replicas run an iteration.",
    ),
    _entry(
        "serving.prefill_replica_count",
        "Prefill replicas",
        "Replicas that only prefill.",
    ),
    _entry(
        "serving.decode_replica_count",
        "Decode replicas",
        "Replicas that only decode.",
    ),
    _entry(
        "serving.prefill_capacity_request_per_s",
        "Capacity of prefill",
        "Requests per second that the prefill replicas carry at saturation.",
        better="up",
    ),
    _entry(
        "serving.decode_capacity_request_per_s",
        "Capacity of decode",
        "Requests per second that the decode replicas carry at saturation.",
        better="up",
    ),
    _entry(
        "serving.kv_link_capacity_request_per_s",
        "Capacity of the KV link",
        "Requests per second whose KV the link between the pools carries at saturation.",
        better="up",
    ),
    _entry(
        "serving.request_per_s",
        "Requests served",
        "Finished requests per second of simulated time.",
        better="up",
    ),
    _entry(
        "serving.input_token_per_s",
        "Input throughput",
        "Prompt tokens of finished requests per second.",
        better="up",
    ),
    _entry(
        "serving.output_token_per_s",
        "Output throughput",
        "Generated tokens per second, all replicas.",
        better="up",
    ),
    _entry(
        "serving.output_token_per_s_per_chip",
        "Throughput per chip",
        "Generated tokens per second and chip.",
        better="up",
    ),
    _entry(
        "serving.slo_goodput_request_per_s",
        "SLO goodput",
        "Requests per second that met the SLO.",
        better="up",
    ),
    _entry(
        "serving.slo_attainment_fraction", "Within SLO", "Share of requests that met the SLO.", better="up"
    ),
    _entry(
        "serving.capacity_request_per_s",
        "Capacity",
        "Saturated request rate of the same mix, closed form.",
        better="up",
    ),
    _entry(
        "serving.offered_load_ratio", "Offered load", "Offered rate over capacity.", symbol="ρ", better="down"
    ),
    _entry("serving.completed_count", "Completed", "Requests that finished."),
    _entry("serving.session_count", "Sessions", "Conversations; requests are their turns."),
    _entry(
        "serving.rejected_count",
        "Rejected",
        "Requests that can never fit, or met a full line.",
        better="down",
    ),
    _entry(
        "serving.preemption_count",
        "Preemptions",
        "Times a running request lost its KV blocks.",
        better="down",
    ),
    _entry("serving.mean_batch_size", "Mean batch", "Sequences per iteration."),
    _entry("serving.makespan_s", "Makespan", "From the first arrival to the last token."),
    _entry("serving.kv_usage_fraction", "KV in use", "Share of KV blocks in use."),
    _entry("serving.mfu_fraction", "MFU", "Model FLOP over peak FLOP of the owned chips.", better="up"),
    _entry("serving.mbu_fraction", "MBU", "Bytes read over peak HBM bytes.", better="up"),
    _entry("serving.regime", "Regime", "Stable, near saturation, or overloaded."),
    _entry(
        "training.forward_s",
        "Forward pass",
        "Forward of one micro-batch through the slowest pipeline stage.",
        better="down",
    ),
    _entry(
        "training.backward_s",
        "Backward pass",
        "Gradients of one micro-batch in the slowest pipeline stage, with what is computed again.",
        better="down",
    ),
    _entry(
        "training.once_s",
        "Once per step",
        "Exposed gradient exchange, optimizer, and what stands between steps.",
        better="down",
    ),
    _entry("training.step_s", "Training step", "Time of one optimiser step.", better="down"),
    _entry(
        "training.token_per_s", "Training throughput", "Tokens trained per second, all chips.", better="up"
    ),
    _entry(
        "training.mfu_fraction",
        "MFU",
        "Useful FLOP over peak FLOP of the chips in the run; causal attention, no recomputation.",
        better="up",
    ),
    _entry("training.hfu_fraction", "HFU", "As MFU, with what is computed again.", better="up"),
    _entry(
        "training.bubble_fraction",
        "Bubble",
        "Share of the pipeline's schedule in which a stage waits: (p−1) ÷ (v·m+p−1).",
        better="down",
    ),
    _entry(
        "training.exposed_communication_fraction",
        "Exposed communication",
        "Share of the step that waits for collectives.",
        better="down",
    ),
    _entry("training.days", "Days", "All tokens at this rate, without failures.", better="down"),
    _entry(
        "training.memory_bytes_per_chip",
        "Training memory per chip",
        "Weights, gradients, optimiser states and activations of the fullest stage.",
        better="down",
    ),
    _entry("training.free_bytes_per_chip", "Free memory in training", "Of the fullest stage.", better="up"),
    _entry("training.chip_count", "Chips in the run", "tp × pp × cp × dp."),
    _entry(
        "cost.usd_per_training_run",
        "Per training run",
        "Cost of all chips while all tokens are trained; lost time is paid for.",
        better="down",
    ),
    _entry("fabric.switch_count", "Switches", better="down"),
    _entry("fabric.link_count", "Links", better="down"),
    _entry("fabric.transceiver_count", "Transceivers", "Under the chosen convention.", better="down"),
    _entry("fabric.ocs_count", "Optical switches"),
    _entry("fabric.tiers", "Tiers", better="down"),
    _entry(
        "fabric.island_count",
        "Islands",
        "Parts that the fabric does not join; 1 is connected.",
        better="down",
    ),
    _entry("fabric.diameter_hops", "Longest path", "Links on the longest shortest path.", better="down"),
    _entry("fabric.mean_hops", "Mean path", "Links on a mean path.", better="down"),
    _entry(
        "fabric.bisection_bytes_per_s",
        "Bisection",
        "Bandwidth across the worst even cut, per direction.",
        better="up",
    ),
    _entry(
        "fabric.max_link_load_fraction",
        "Load of the busiest link",
        "Its bytes over what it can carry in a training step, or in a second of serving.",
        better="down",
    ),
    _entry(
        "fabric.completion_s",
        "All flows done",
        "When the last flow of a training step, or of a second of serving, ends if all start at once and share links "
        "fairly.",
        better="down",
    ),
    _entry(
        "fabric.core_completion_s",
        "Flows on the critical path done",
        "The same for the flows that a step waits for.",
        better="down",
    ),
    _entry("fabric.fabric_capex_usd", "Fabric price", "Switches, links and optics.", better="down"),
    _entry("fabric.fabric_power_w", "Fabric power", better="down"),
    _entry(
        "fabric.deploy_hours",
        "Hours to deploy",
        "One person's hours to build the fabric: switches, modules, cables, ports and sessions.",
        better="down",
    ),
    _entry(
        "fabric.monitor_hours_per_year",
        "Hours to watch it",
        "One person's hours in a year for alarms and counters, without repairs.",
        better="down",
    ),
    _entry(
        "fabric.upgrade_hours",
        "Hours to upgrade",
        "One person's hours for one pass of software and firmware over the fabric.",
        better="down",
    ),
    _entry("fabric.scaleup_switch_count", "Scale-up switches", "Switch chips inside the scale-up domains."),
    _entry("fabric.scaleup_link_count", "Scale-up links", "Links between chips and the scale-up switches."),
    _entry("fabric.scaleup_cable_count", "Scale-up cables", "Copper cables inside the scale-up domains."),
    _entry(
        "fabric.routing_adjacency_count",
        "Routing adjacencies",
        "Neighbour pairs to configure and watch.",
        better="down",
    ),
    _entry(
        "fabric.path_count",
        "Shortest paths",
        "Between two endpoints that are far apart: the fewest that such a pair has.",
        better="up",
    ),
    _entry(
        "fabric.disjoint_path_count",
        "Disjoint paths",
        "Shortest paths of that pair that share no link, their endpoints' own left out.",
        better="up",
    ),
    _entry(
        "fabric.all_to_all_slowdown_ratio",
        "All-to-all, extra hop",
        "Extra all-to-all time from forwarding inside the scale-up domain.",
        better="down",
    ),
    _entry("fabric.collective.all_reduce_s", "All-reduce", better="down"),
    _entry("fabric.collective.all_gather_s", "All-gather", better="down"),
    _entry("fabric.collective.reduce_scatter_s", "Reduce-scatter", better="down"),
    _entry("fabric.collective.all_to_all_s", "All-to-all", better="down"),
    _entry(
        "reliability.slice_goodput_fraction",
        "Slice goodput, OCS",
        "Share of chips in full slices when cubes are re-wired freely.",
        better="up",
    ),
    _entry(
        "reliability.static_goodput_fraction",
        "Slice goodput, static",
        "Share of chips in full slices of a fixed torus, aligned.",
        better="up",
    ),
    _entry(
        "reliability.static_any_box_goodput_fraction",
        "Slice goodput, any box",
        "Share of chips in full slices of a fixed torus, in any contiguous box, by Monte Carlo.",
        better="up",
    ),
    _entry("reliability.mtbf_s", "Time between interruptions", "Mean, for one slice.", better="up"),
    _entry(
        "reliability.goodput_fraction",
        "Goodput",
        "Share of time that survives failures and checkpoints.",
        better="up",
    ),
    _entry("reliability.checkpoint_interval_s", "Checkpoint interval"),
    _entry(
        "reliability.blast_radius_chip_count",
        "Blast radius, chips",
        "Chips that a failing component takes out of work, the mean over failures.",
        better="down",
    ),
    _entry(
        "reliability.expected_suspect_count",
        "Suspects",
        "Components that may be why a pair of chips is slow, expected over failures and all equal-cost paths.",
        better="down",
    ),
    _entry(
        "analysis.fault_visibility",
        "Fault visibility",
        "One over the suspects: 1 where a symptom names its cause.",
        better="up",
    ),
    _entry(
        "reliability.reconfiguration_s",
        "Reconfiguration",
        "Time to put a spare cube in the place of a failed one: mirrors, then links and routes.",
        better="down",
    ),
    _entry(
        "reliability.shock.dip_fraction",
        "Dip",
        "Most of the goodput that is missing in any slice of time, against the same requests, or the same job in "
        "training, without the shocks.",
        better="down",
    ),
    _entry(
        "reliability.shock.recovery_s",
        "Recovery",
        "From the first shock until goodput stays within 5 % of what it is without the shocks.",
        better="down",
    ),
    _entry(
        "reliability.shock.lost_goodput_fraction",
        "Lost goodput",
        "Requests that miss the SLO because of the shocks, of those that would have met it; in training, tokens "
        "that are missing until the last recovery and as long after it.",
        better="down",
    ),
    _entry(
        "reliability.life.goodput_fraction",
        "Life goodput",
        "Useful chip time over owned chip time, over the simulated life.",
        better="up",
    ),
    _entry(
        "reliability.life.utilisation_fraction",
        "Chips held by jobs",
        "Chip time that jobs held over owned chip time.",
        better="up",
    ),
    _entry("reliability.life.failure_count", "Failures", "Of all parts, over the simulated life."),
    _entry(
        "reliability.life.interruption_count",
        "Interruptions",
        "Stops of jobs by failures, over the simulated life.",
        better="down",
    ),
    _entry(
        "reliability.life.swap_count", "Units swapped in", "Healthy units that took the place of failed ones."
    ),
    _entry(
        "reliability.life.mtti_s",
        "Time between stops of a job",
        "Time that a job holds its chips, per interruption.",
        better="up",
    ),
    _entry(
        "reliability.life.stop_wait_s",
        "Wait after a stop",
        "From a stop to having all units again, mean over restarts.",
        better="down",
    ),
    _entry("reliability.life.wait_s", "Wait of new jobs", "From arrival to the first start.", better="down"),
    _entry("reliability.life.finished_count", "Jobs finished", "Over the simulated life.", better="up"),
    _entry(
        "reliability.life.reconfiguration_count",
        "Slices wired",
        "Starts and restarts, each with circuits set.",
    ),
    _entry("cost.capex_usd", "Capex", better="down"),
    _entry("cost.opex_usd_per_hour", "Opex", better="down"),
    _entry("cost.tco_usd_per_year", "TCO", better="down"),
    _entry("cost.usd_per_million_output_tokens", "Per million output tokens", better="down"),
    _entry("cost.usd_per_million_tokens", "Per million tokens", "Input and output together.", better="down"),
    _entry("cost.power_w", "Power", "At the meter, PUE included.", better="down"),
    _entry(
        "cost.usd_per_million_tokens.input",
        "Per million input tokens",
        "The bill's share of prompts, by the tokens that passed through the layers.",
        better="down",
    ),
    _entry(
        "cost.usd_per_million_tokens.output",
        "Per million output tokens, their share",
        "The bill's share of decoding, by the tokens that passed through the layers.",
        better="down",
    ),
    _entry("cost.idle_power_w", "Power, idle", "At the meter, while no kernel runs.", better="down"),
    _entry(
        "cost.peak_power_w",
        "Power, full load",
        "At the meter, while kernels run all the time.",
        better="down",
    ),
    _entry(
        "cost.chip_usd_per_hour",
        "Own chip-hour",
        "TCO over the hours of all chips, used or not.",
        better="down",
    ),
    _entry("cost.cloud_chip_usd_per_hour", "Rented chip-hour", "What the same chip costs in a cloud."),
    _entry(
        "cost.cloud_break_even_fraction",
        "Break-even with a cloud",
        "Above this utilisation owning is cheaper than renting the same chips for the hours that they are used.",
        better="down",
    ),
    _entry(
        "cost.api_usd_per_million_tokens",
        "API, per million tokens",
        "For this mix of input and output tokens.",
    ),
    _entry(
        "cost.api_break_even_fraction",
        "Break-even with an API",
        "Above this share of the capacity owning is cheaper than buying the same tokens from an API.",
        better="down",
    ),
    _entry(
        "cost.saturated_usd_per_million_output_tokens",
        "Per million output tokens, all capacity used",
        "The least that an output token can cost here; promises are not kept at this load.",
        better="down",
    ),
    _entry(
        "cost.saturated_joule_per_token",
        "Energy per output token, all capacity used",
        "The least that an output token can take here.",
        better="down",
    ),
    _entry(
        "cost.good_usd_per_million_output_tokens",
        "Per million output tokens within the SLO",
        "TCO at this load over the output tokens of requests that kept the promise: what the SLO makes a token cost.",
        better="down",
    ),
    _entry(
        "cost.slo_premium_ratio",
        "Price of the SLO",
        "What an output token within the SLO costs over what it costs with all capacity used.",
        better="down",
    ),
    _entry("cost.joule_per_token", "Energy per output token", better="down"),
    _entry("cost.priced_fraction", "Priced", "Share of the bill's items that have a price.", better="up"),
    _entry(
        "analysis.effective_utilisation_fraction",
        "Effective utilisation",
        "Useful model FLOP over peak × time × chips owned.",
        better="up",
    ),
    _entry(
        "analysis.useful_work_fraction",
        "Useful work",
        "Tokens that pass the layers for the first time, over all that pass.",
        better="up",
    ),
    _entry(
        "analysis.tax.waiting_usd_per_year",
        "Waiting tax",
        "Yearly cost of compute while it waits.",
        better="down",
    ),
    _entry(
        "analysis.tax.connection_usd_per_year",
        "Connection tax",
        "Yearly cost of links, switches and optics that carry next to nothing.",
        better="down",
    ),
    _entry(
        "analysis.tax.understanding_usd_per_year",
        "Understanding tax",
        "Yearly cost of finding out which part has failed.",
        better="down",
    ),
    _entry(
        "analysis.tax.change_usd_per_year",
        "Change tax",
        "Expected yearly cost of becoming one of the declared alternatives.",
        better="down",
    ),
    _entry(
        "analysis.friction_ratio",
        "Friction coefficient",
        "Network, software, operations and energy per dollar of compute that is added.",
        better="down",
    ),
    _entry(
        "analysis.friction_to_double_ratio",
        "Friction to twice the size",
        "The same from this size to twice of it.",
        better="down",
    ),
    _entry("analysis.busy_fraction", "Busy", "Share of chip time that computes.", better="up"),
    _entry("analysis.waiting.hbm_fraction", "Waiting for HBM", better="down"),
    _entry("analysis.waiting.scaleup_fraction", "Waiting for scale-up", better="down"),
    _entry("analysis.waiting.scaleout_fraction", "Waiting for scale-out", better="down"),
    _entry("analysis.waiting.host_fraction", "Waiting for the host", better="down"),
    _entry("analysis.waiting.bubble_fraction", "Pipeline bubble", better="down"),
    _entry(
        "analysis.waiting.queue_fraction",
        "Idle",
        "No iteration running, or the chip is not allocated.",
        better="down",
    ),
    _entry("analysis.waiting.overhead_fraction", "Launch and CPU", better="down"),
    _entry("analysis.waiting.failure_fraction", "Failure", better="down"),
    _entry(
        "analysis.doubling",
        "Gain if doubled",
        "Capacity with twice the resource over capacity now.",
        better="up",
    ),
    _entry("analysis.bottleneck", "Bottleneck", "The resource whose doubling brings most."),
    _entry(
        "analysis.without_limit",
        "Gain without limit",
        "Capacity with more of the resource than anything needs, over capacity now.",
        better="up",
    ),
    _entry(
        "analysis.used", "In use", "Share of the resource that the offered load uses or holds.", better="down"
    ),
    _entry(
        "analysis.saturation",
        "Saturates at",
        "The load that this resource alone lets through, room for sequences being what it is.",
        better="up",
    ),
    _entry(
        "analysis.gain_price",
        "1 % of gain costs",
        "What twice the resource costs per year, over the per cent of capacity that it brings.",
        better="down",
    ),
    _entry(
        "analysis.boundary.per_chip_ratio",
        "Capacity of a chip",
        "Capacity per chip over what it is now.",
        better="up",
    ),
    _entry(
        "analysis.crossing.now_fraction",
        "Bytes between domains",
        "Share of all bytes that leave their scale-up domain.",
    ),
    _entry(
        "analysis.crossing.full_fraction",
        "NICs full at",
        "Share of all bytes that may leave their domain before NICs are full.",
        better="up",
    ),
    _entry(
        "analysis.colocated.slowdown_ratio",
        "Traffic beside the other",
        "Time that a job's traffic takes beside another job over the same alone.",
        better="down",
    ),
    _entry(
        "analysis.colocated.step_ratio",
        "Step beside the other",
        "A job's step beside another job over its step alone.",
        better="down",
    ),
    _entry(
        "analysis.doublings.sum_ratio",
        "Sum of single gains",
        "One and what each doubling alone adds to capacity.",
        better="up",
    ),
    _entry(
        "analysis.doublings.together_ratio",
        "Gain of all together",
        "Capacity with twice of every resource over capacity now.",
        better="up",
    ),
)

_TERMS: Final = (
    _entry("term.trim", "Trim (配平)", "The small change that rebalances a large machine."),
    _entry("term.waiting_tax", "Waiting tax", "What chips cost while they wait."),
    _entry(
        "term.connection_tax", "Connection tax", "What links and switches cost that the work hardly loads."
    ),
    _entry("term.understanding_tax", "Understanding tax", "What it costs to find the cause of a fault."),
    _entry("term.change_tax", "Change tax", "What it costs to move to another configuration."),
    _entry(
        "term.bottleneck_budget", "Bottleneck budget", "What each resource would bring if it were doubled."
    ),
    _entry("term.fault_visibility", "Fault visibility", "One over the number of suspects after a symptom."),
    _entry(
        "term.rail", "Rail", "The chips with the same index in every server, and the switches they share."
    ),
    _entry("term.islands", "Islands", "Groups of chips that the fabric does not join."),
    _entry("term.kv_block", "KV block", "A fixed number of tokens' keys and values, the unit of paging."),
    _entry("term.slice", "Slice", "The chips that one job holds."),
    _entry("term.ocs", "OCS", "Optical circuit switch: mirrors that re-wire cubes of chips."),
)

ENTRIES: Final[dict[str, Entry]] = {entry.key: entry for entry in (*_FIELDS, *_METRICS, *_TERMS)}
_STATISTICS: Final = {"mean": "mean", "max": "max", "min": "min"}
_RESOURCES: Final = {
    "compute": "Compute",
    "hbm": "HBM",
    "hbm_bandwidth": "HBM bandwidth",
    "hbm_capacity": "HBM capacity",
    "l2": "L2",
    "scaleup": "Scale-up",
    "scaleout": "Scale-out",
    "host": "Host",
    "bubble": "Pipeline bubble",
    "overhead": "Launch and CPU",
    "queue": "Idle",
    "failure": "Failure",
    "latency": "Latency",
    "scheduler": "Scheduler",
    "external_io": "External I/O",
}


def entry(path: str) -> Entry | None:
    """The entry of a scenario path or metric id: by the whole, without its statistic, then by its last key."""
    parts = _plain_parts(path)
    for start in range(len(parts)):
        found = ENTRIES.get(".".join(parts[start:]))
        if found is not None:
            return found
    return _family(parts)[0]


def _plain_parts(path: str) -> list[str]:
    parts = path.split(".")
    return parts[:-1] if statistic(path) else parts


def _family(parts: list[str]) -> tuple[Entry | None, str]:
    """`analysis.doubling.compute.gain_ratio`: the entry that its first keys have, and which one of them it is."""
    for end in range(len(parts) - 1, 1, -1):
        found = ENTRIES.get(".".join(parts[:end]))
        if found is not None:
            return found, parts[end]
    return None, ""


def statistic(metric: str) -> str:
    """`serving.ttft_s.p95` -> "p95"; "" where the id has none."""
    last = metric.rsplit(".", 1)[-1]
    return last if last in _STATISTICS or re.fullmatch(r"[pq]\d+", last) else ""


def label(path: str) -> str:
    """English label of a field or metric with its statistic; the id itself where the glossary has none."""
    found = entry(path)
    if found is None:
        return path
    family, member = _family(_plain_parts(path))
    if found is family:
        return f"{found.label}: {resource_label(member)}"
    mark = statistic(path)
    return f"{found.label} {mark}" if mark else found.label


def resource_label(resource: str) -> str:
    return _RESOURCES.get(resource, resource)


def better(path: str) -> Better:
    found = entry(path)
    return found.better if found else "neutral"
