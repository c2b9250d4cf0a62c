#!/bin/sh
# An agent that knows nothing of lifesigns but two variables: it works in steps, crashes once, and goes on where it was.
#
#     sh examples/supervise_any_command.sh
#
# `lifesigns run` starts it anew with the checkpoint it left and a note about what happened.

agent='
step=${LIFESIGNS_CHECKPOINT:-0}
if [ -n "$LIFESIGNS_HANDOFF" ]; then
    echo "I go on after step $step. I was told: $LIFESIGNS_HANDOFF" | head -n 1
fi
while [ "$step" -lt 4 ]; do
    step=$((step + 1))
    echo "step $step"
    echo "$step" > "$LIFESIGNS_RUN/checkpoint"
    if [ "$step" -eq 2 ] && [ "$LIFESIGNS_ATTEMPT" -eq 1 ]; then
        kill -SEGV $$    # what no agent plans
    fi
done
echo "done"
'

exec "${PYTHON:-python3}" -m lifesigns run --id stepper --task count-to-four --restart on-failure --max-time 1m -- sh -c "$agent"
