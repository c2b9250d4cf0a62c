#!/bin/bash
# lifesigns: hands one event of a coding agent (JSON, on stdin) to the hub of this state folder, and prints its answer.
# It never fails and never waits long: what a hub that is away should know later is left in the spool beside this file.
# Nearly everything is done by the shell itself: each process more would cost the agent a millisecond or two.
LC_ALL=C
here=${0%/*}
program=$1
more= # of an event, goes around this shell, which would take 20 ms for a megabyte
if ((BASH_VERSINFO[0] >= 5)); then
    IFS= read -r -N 200000 event && more=yes # in blocks, and no byte too many; without the process that cat would be
else
    event=$(exec cat) # stdin is a socket: there is nothing in /dev to open
fi
drop_more() {
    [[ $more ]] && cat >/dev/null # a program whose hook does not read to the end may think that it failed
    more=
}

# A program that is started by another one inherits its variables: only those of this program count.
pid=$PPID
project=$PWD
case $program in
claude-code) pid=${CLAUDE_PID:-$PPID} project=${CLAUDE_PROJECT_DIR:-$PWD} ;;
gemini)
    project=${GEMINI_PROJECT_DIR:-$PWD}
    # Before each model call it hands over the whole conversation, of which nothing is wanted.
    [[ $event == *'"hook_event_name":"BeforeModel"'* && $event == *',"llm_request":'* ]] && event="${event%%,\"llm_request\":*}}" && drop_more
    ;;
qwen) project=${QWEN_PROJECT_DIR:-$PWD} ;;
copilot) project=${COPILOT_PROJECT_DIR:-$PWD} event=${event/'"sessionId":'/'"session_id":'} ;; # its notifications mix two styles
esac
started=
if [[ -r /proc/$pid/stat ]]; then
    read -r stat < "/proc/$pid/stat"
    set -- ${stat##*) }
    started=${20}
fi
project=${project##*/}
origin="pid=$pid&started=$started&project=${project//[^A-Za-z0-9._-]/-}"

leave() {
    drop_more
    case $event in
    *'"hook_event_name":"'SessionStart'"'* | *'"hook_event_name":"'SessionEnd'"'* | *'"hook_event_name":"'Stop*'"'* | \
        *'"hook_event_name":"'Notification'"'* | *'"hook_event_name":"'Interrupt'"'* | *'"hook_event_name":"'UserPromptSubmit'"'* | \
        *'"hook_event_name":"'BeforeAgent'"'* | *'"hook_event_name":"'AfterAgent'"'*)
        set -- "$here"/spool/*
        if (($# < 1000 && ${#event} < 200000)); then
            umask 077
            [[ -d $here/spool ]] || mkdir "$here/spool"
            name=${EPOCHREALTIME:-$(date +%s)}-$$
            printf '%s\n%s' "$origin" "$event" >"$here/spool/.$name" && mv "$here/spool/.$name" "$here/spool/$name@$program"
        fi
        ;;
    esac
    exit 0
} 2>/dev/null

# A hub that does not answer in time is left alone for a while, or until it says that it is well: it takes the file away. It is told when
# we give up, a little before we do: what it would answer after that waits for the next event, and is not lost.
patience=${LIFESIGNS_HOOK_PATIENCE:-0.04}
[[ $patience =~ ^[0-9]{1,4}(\.[0-9]{1,6})?$ ]] || patience=0.04
gives_up=
if ((BASH_VERSINFO[0] >= 5)); then
    [[ $patience == *.* ]] && fraction=${patience#*.}000000 || fraction=000000
    gives_up=$((${EPOCHREALTIME/[.,]/} + (10#${patience%.*} * 1000000 + 10#${fraction:0:6}) * 7 / 8))
    gives_up="&gives_up_at=${gives_up:0:10}.${gives_up:10}"
elif ((BASH_VERSINFO[0] < 4)); then
    patience=1 # one of the last century counts whole seconds
fi
now=${EPOCHSECONDS:-$(date +%s)}
[[ -r $here/slow ]] && read -r slow <"$here/slow" && ((now < slow)) && leave

[[ -r $here/../hub.url && -r $here/token ]] || leave
read -r url <"$here/../hub.url"
read -r token <"$here/token"
[[ $url == http://* ]] || leave
at=${url#http://}
host=${at%:*}
host=${host#[}

if [[ $more ]]; then
    umask 077
    size=$((${#event} + $(tee "$here/.more-$$" | wc -c)))
    exec 5<"$here/.more-$$" && rm -f "$here/.more-$$" || exit 0
else
    event+=$'\n' size=${#event} # bash writes a text line by line; one that ends with a line leaves nothing behind in its buffer
fi 2>/dev/null

printf -v head 'POST /hooks/%s?%s%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' \
    "$program" "$origin" "$gives_up" "$at" "$token" "$size"

exchange() {
    exec 3<>"/dev/tcp/${host%]}/${at##*:}" || exit
    printf '%s' "$head" "$event" >&3
    [[ $more ]] && cat <&5 >&3
    whole "" <&3
    printf '%s' "$answer"
} 2>/dev/null

# All that is said until the other side has said everything; $1 is how long that may take.
whole() {
    if ((BASH_VERSINFO[0] >= 4)); then
        IFS= read -r -N 1000000 $1 answer
    else
        IFS= read -r -d '' $1 answer
    fi
}

# In a process of its own: neither a hub that takes no connection nor one that reads nothing can hold the agent up.
exec 4< <(exchange)
sends=$!
whole "-t $patience" <&4
if (($? > 128)); then
    kill $sends 2>/dev/null
    [[ $event == *'"hook_event_name":"SessionStart"'* ]] || printf '%s\n' $((now + 30)) >"$here/slow" # a start is written down first
    leave
fi
case $answer in
'HTTP/1.1 200'*)
    head=${answer%%$'\r\n\r\n'*}
    answer=${answer#*$'\r\n\r\n'}
    [[ $answer == '{}' ]] || printf '%s' "$answer"
    [[ $head == *$'\nlifesigns-interrupt: '* ]] && kill -INT $pid # the run is to end, and no answer would end it
    ;;
'' | 'HTTP/1.1 408'* | 'HTTP/1.1 429'* | 'HTTP/1.1 5'*) leave ;;
esac
exit 0
