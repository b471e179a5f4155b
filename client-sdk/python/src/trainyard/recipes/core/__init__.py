"""Code that the recipes share: configuration, runs with checkpoints and metrics, data, chat templates, rollouts,
rewards."""
