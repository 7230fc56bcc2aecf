"""Where bytes live: tiers, the KV budget of a replica, the paged pool."""
