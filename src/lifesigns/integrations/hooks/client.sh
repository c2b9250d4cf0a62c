#!/bin/bash
# lifesigns: hands one event of a coding agent (JSON, on stdin) to the hub of this state folder, and prints its answer.
# It never fails and never waits long: what a hub that is away should know later is left in the spool beside this file.
# Nearly everything is done by the shell itself: each process more would cost the agent a millisecond or two.
LC_ALL=C
here=${0%/*}
program=$1
if ((BASH_VERSINFO[0] >= 5)); then
    IFS= read -r -N 8000000 event # in blocks, to the end; without the process that cat would be
else
    event=$(exec cat) # stdin is a socket: there is nothing in /dev to open
fi

# A program that is started by another one inherits its variables: only those of this program count.
pid=$PPID
project=$PWD
case $program in
claude-code) pid=${CLAUDE_PID:-$PPID} project=${CLAUDE_PROJECT_DIR:-$PWD} ;;
gemini)
    project=${GEMINI_PROJECT_DIR:-$PWD}
    # Before each model call it hands over the whole conversation, of which nothing is wanted.
    [[ $event == *'"hook_event_name":"BeforeModel"'* && $event == *',"llm_request":'* ]] && event="${event%%,\"llm_request\":*}}"
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

# A hub that does not answer in time is left alone for a while. Only a bash of this century can wait for less than a second.
patience=1
if ((BASH_VERSINFO[0] >= 4)); then
    patience=0.05
    [[ $event == *'"hook_event_name":"SessionStart"'* ]] && patience=0.25 # a start is written down first
fi
patience=${LIFESIGNS_HOOK_PATIENCE:-$patience}
now=${EPOCHSECONDS:-$(date +%s)}
[[ -r $here/slow ]] && read -r slow <"$here/slow" && ((now < slow)) && leave

[[ -r $here/../hub.url && -r $here/token ]] || leave
read -r url <"$here/../hub.url"
read -r token <"$here/token"
[[ $url == http://* ]] || leave
at=${url#http://}
host=${at%:*}
host=${host#[}
{ exec 3<>"/dev/tcp/${host%]}/${at##*:}"; } 2>/dev/null || leave
trap '' PIPE
printf 'POST /hooks/%s?%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
    "$program" "$origin" "$at" "$token" "${#event}" "$event" >&3 2>/dev/null || leave

IFS= read -r -t $patience status <&3 || { printf '%s\n' $((now + 3)) >"$here/slow"; leave; }
length=0
while IFS= read -r -t $patience line <&3 && [[ $line != $'\r' ]]; do
    [[ $line == [Cc]ontent-[Ll]ength:* ]] && length=${line//[^0-9]/}
done
case $status in
'HTTP/1.1 200'*)
    body=
    ((length > 2)) && IFS= read -r -t $patience -n "$length" body <&3
    printf '%s' "$body"
    ;;
'HTTP/1.1 503'*) leave ;;
esac
exit 0
