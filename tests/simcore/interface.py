"""The metric ids of the interface, as patterns, and the ones that were added to it."""

import re
from typing import Final

STATISTIC = r"\.(mean|p50|p90|p95|p99)"
INTERFACE: Final = (
    r"model\.(parameter_count|active_parameter_count|kv_bytes_per_token|weight_bytes)",
    r"memory\.(weight_bytes_per_chip|kv_bytes_per_chip|kv_token_capacity|kv_block_count|max_concurrency_at_max_len)",
    r"memory\.kv_(useful|reserved_waste|internal_waste|external_waste)_fraction",
    r"memory\.prefix_hit_fraction",
    r"compute\.(decode_step_s|prefill_step_s|roofline_bound)",
    r"compute\.moved_bytes_per_output_token\.[a-z0-9_]+",
    r"serving\.(ttft_s|tpot_s|itl_s|e2e_s|queue_s)" + STATISTIC,
    r"serving\.(request_per_s|input_token_per_s|output_token_per_s|output_token_per_s_per_chip)",
    r"serving\.(slo_goodput_request_per_s|slo_attainment_fraction|capacity_request_per_s|offered_load_ratio)",
    r"serving\.(completed_count|rejected_count|preemption_count|mean_batch_size|makespan_s)",
    r"serving\.kv_usage_fraction\.(mean|max)",
    r"serving\.(mfu_fraction|mbu_fraction|regime|replica_count)",
    r"training\.(step_s|mfu_fraction|token_per_s|bubble_fraction|exposed_communication_fraction|days)",
    r"fabric\.(switch_count|link_count|transceiver_count|ocs_count|tiers|island_count|diameter_hops|mean_hops)",
    r"fabric\.(bisection_bytes_per_s|max_link_load_fraction|fabric_capex_usd|fabric_power_w|routing_adjacency_count)",
    r"fabric\.collective\.(all_reduce_s|all_gather_s|reduce_scatter_s|all_to_all_s)",
    r"reliability\.(slice|static)_goodput_fraction\.(mean|q97)",
    r"reliability\.static_any_box_goodput_fraction\.mean",
    r"reliability\.(mtbf_s|goodput_fraction|checkpoint_interval_s|reconfiguration_s)",
    r"reliability\.(blast_radius_chip_count|expected_suspect_count)",
    r"reliability\.shock\.(dip_fraction|recovery_s|lost_goodput_fraction)",
    r"cost\.(capex_usd|opex_usd_per_hour|tco_usd_per_year|power_w|joule_per_token|priced_fraction)",
    r"cost\.usd_per_million_(output_tokens|tokens|tokens\.input|tokens\.output)",
    r"analysis\.(effective_utilisation_fraction|friction_ratio|fault_visibility|busy_fraction|bottleneck)",
    r"analysis\.tax\.(waiting|connection|understanding|change)_usd_per_year",
    r"analysis\.waiting\.(hbm|scaleup|scaleout|host|bubble|queue|overhead|failure)_fraction",
    r"analysis\.doubling\.[a-z_]+\.gain_ratio",
)
ADDED: Final = (
    r"analysis\.useful_work_fraction",  # the factor of effective utilisation that recomputing takes
    r"analysis\.friction_to_double_ratio",  # the secant beside the margin
    r"memory\.(swap_count|prefix_hit_fraction\.(host_dram|nvme|remote))",  # what tiers behind the pool came to
    r"compute\.random_expert_imbalance_ratio",  # what chance does to expert ranks, beside the ratio that is assumed
    r"compute\.lockstep_step_ratio",  # what waiting for prompts of other ranks comes to, which no result has
    r"fabric\.all_to_all_slowdown_ratio",  # the extra hop that a rail-only fabric's guard rail speaks of
    r"fabric\.(path_count|disjoint_path_count)",  # path diversity between two endpoints that are far apart
    r"memory\.(left|state|paged)_bytes_per_chip",  # what the budget leaves, and to whom
    # In tables with their trees, and no metrics: tiers behind HBM.
    r"memory\.(swap_s|recompute_s|swap_to_recompute_ratio|break_even_tokens|tier_(bytes_per_s|capacity_tokens))(\..+)?",
    r"compute\.(moved_per_output_token_s|moved_joule_per_output_token)(\.[a-z0-9_]+)?",  # beside the bytes
    r"training\.(memory_bytes_per_chip|free_bytes_per_chip|chip_count|hfu_fraction)",  # whether a step fits, on what
    r"training\.(forward|backward|once)_s",  # the parts of a step
    r"serving\.session_count",  # of which requests are the turns
    r"serving\.estimate\.(ttft_s|tpot_s)",  # what queueing expects, to hold against the simulation
    # Prefill and decode apart: the way of the KV, and what each pool and the link are and carry.
    r"serving\.(kv_wait_s|kv_transfer_s)" + STATISTIC,
    r"serving\.((prefill|decode)_(busy_fraction|replica_count)|kv_transfer_alone_s)",
    r"serving\.(prefill|decode|kv_link)_capacity_request_per_s",
    r"serving\.speculative\.(expected_tokens_per_step|tokens_per_step|iteration_s|tpot_s)",  # where drafts are made
    r"serving\.speculative\.(speedup_ratio|break_even_fraction)",
    r"serving\.autoscaling\.(ready_replica_count\.(mean|max)|replica_s|used_fraction|scale_(up|down)_count)",
    r"fabric\.(core_)?completion_s",  # of the flows of a step, or of a second of serving, all started at once
    r"cost\.usd_per_training_run",  # tokens of the run over tokens per second, priced
    r"cost\.((idle|peak)_power_w|(cloud_)?chip_usd_per_hour|(cloud|api)_break_even_fraction)",  # own or rented
    r"cost\.(api_usd_per_million_tokens|(saturated|good)_usd_per_million_output_tokens|saturated_joule_per_token)",
    r"cost\.slo_premium_ratio",  # a token within the SLO over one with all capacity used
    r"fabric\.(deploy_hours|monitor_hours_per_year|upgrade_hours)",  # what a fabric asks of people
    r"fabric\.scaleup_(switch|link|cable)_count",  # what the scale-up domains are built of
    r"reliability\.life\.(goodput_fraction|utilisation_fraction|mtti_s|stop_wait_s\.mean|wait_s\.(mean|p95))",
    r"analysis\.doublings\.(sum|together)_ratio",  # why the gains of single doublings do not add up
    r"analysis\.(without_limit|used|saturation|gain_price)(\.[a-z_]+)*",  # in the table of doublings, no metrics
    r"analysis\.(boundary\.per_chip_ratio|crossing\.(now|full)_fraction|colocated\.(slowdown|step)_ratio)",  # on demand
    r"reliability\.life\.(failure|interruption|swap|finished|reconfiguration)_count",
)
KNOWN_METRICS: Final = re.compile("|".join((*INTERFACE, *ADDED)))
