"""Where bytes live: tiers and offload, the KV budget of a replica, its pool and allocators, prefix caching."""
