# What the machine at the other end does, in the words of any POSIX shell: it says what it
# is, takes the program, runs it, and removes it. mark is set by whoever sends this; a line
# that begins with it is ours, and whatever else a login prints is not.
set -f
umask 077
LC_ALL=C
export LC_ALL
d=
trap 'test -z "$d" || rm -rf "$d"' EXIT
trap 'exit 1' HUP INT TERM PIPE
say() { printf '\n%s %s\n' "$mark" "$*"; }
fail() { say failed "$*"; exit 1; }

uid=$(id -u) || fail 'there is no id(1)'
form=plain
if command -v gzip >/dev/null 2>&1; then form=gzip; fi
say machine "$(uname -s)" "$(uname -m)" "$uid" "$form"
read -r bytes size sum asks words || exit 1

# room DIRECTORY: makes d in it, if programs may be executed there and this one has room.
room() {
    if ! d=$(mktemp -d "$1/.plimsoll.XXXXXXXXXX" 2>/dev/null </dev/null); then
        d=
        why="$why; $1 cannot be written"
        return 1
    fi
    printf '#!/bin/sh\nexit 0\n' >"$d/plimsoll"
    chmod 700 "$d/plimsoll"
    free=$(df -Pk "$d" 2>/dev/null </dev/null | { read -r x && read -r x x x free x && echo "$free"; })
    case $free in '' | *[!0-9]*) free=$size ;; esac # nobody says
    if ! "$d/plimsoll" >/dev/null 2>&1 </dev/null; then
        why="$why; $1 lets nothing run (noexec)"
    elif test "$free" -le $((size / 1024)); then
        why="$why; $1 has $free kB free"
    elif ! head -c "$size" /dev/zero 2>/dev/null </dev/null >"$d/plimsoll"; then # df knows of no quota
        why="$why; $1 takes less, though it has $free kB free (is there a quota?)"
    else
        return 0
    fi
    rm -rf "$d"
    d=
    return 1
}
why=
for t in "${XDG_RUNTIME_DIR-}" "/run/user/$uid" /dev/shm /tmp "${HOME-}"; do
    case $t in
    /*) if room "$t"; then break; fi ;;
    esac
done
test -n "$d" || fail "no directory there takes a program of $size bytes and lets it run (tried${why#;})"

case $form in
gzip) head -c "$bytes" | gzip -dc >"$d/plimsoll" ;;
*) head -c "$bytes" >"$d/plimsoll" ;;
esac 2>/dev/null || fail "the program could not be written into ${d%/*}; is the disk full, or a quota reached?"
got=$(sha256sum <"$d/plimsoll") || fail 'there is no sha256sum to check the program with'
test "${got%% *}" = "$sum" || fail "the program arrived in ${d%/*} damaged, or not whole; is the disk full, or a quota reached?"

# feed has sudo find the password that was sent when it asks: it passes through a pipe, and stands in no file, argument or
# environment. Who fetches it takes the way away, so that a wrong one is not tried twice.
feed() {
    rm -f "$d/word"
    mkfifo "$d/word" || fail "no pipe can be made in ${d%/*}"
    exec 3<>"$d/word"
    printf '%s\n' "$word" >&3
    printf '#!/bin/sh\nIFS= read -r word <"${0%%/*}/word"\nrm -f "${0%%/*}/word" "$0"\nprintf "%%s\\n" "$word"\n' >"$d/ask"
    chmod 700 "$d/ask"
    SUDO_ASKPASS=$d/ask
    export SUDO_ASKPASS
}
as=$uid why=
if test "$uid" != 0; then
    if why=$(sudo -n -- "$d/plimsoll" version 2>&1 >/dev/null </dev/null); then as=sudo; fi
fi
case $as-$asks-$why in
sudo-* | *-no-*) ;;
*' is required'*)
    say password wanted
    IFS= read -r word || exit 1
    if test -n "$word"; then
        feed
        if why=$(sudo -k -A -- "$d/plimsoll" version 2>&1 >/dev/null </dev/null 3>&-); then as=password; fi
    fi
    ;;
esac
say run "$as" $why
case $as in
sudo) sudo -n -- "$d/plimsoll" $words ;;
password)
    feed
    word=
    sudo -k -A -- "$d/plimsoll" $words 3>&-
    ;;
*) "$d/plimsoll" $words ;;
esac
exit
