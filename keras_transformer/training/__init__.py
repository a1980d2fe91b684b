"""What a training needs: its settings and its folder, losses, the schedule, checkpoints, several devices.

The run folder is known to `run` alone.
"""
