# Prints what a process of this world can see and do, one NAME=VALUE a line.
for namespace in user mnt pid net ipc uts cgroup; do
  printf '%s\n' "ns $namespace=$(readlink /proc/self/ns/$namespace)"
done
while read -r name value; do
  case $name in
    CapEff: | CapPrm: | CapBnd: | CapAmb: | NoNewPrivs: | Seccomp: | Seccomp_filters: | Groups:)
      printf '%s\n' "${name%:}=$value" ;;
  esac
done </proc/self/status
read -r inside outside count </proc/self/uid_map
printf '%s\n' "uid=$(id -u)" "kernel uid, from here=$outside" "ids mapped=$count"
mounts=0
while read -r line; do mounts=$((mounts + 1)); done </proc/self/mountinfo
printf '%s\n' "mounts=$mounts" "processes seen=$(ls -d /proc/[0-9]* | wc -l)"
try() { if (eval "$2") >/dev/null 2>&1; then echo "$1=yes"; else echo "$1=no"; fi; }
try 'writes /proc/sys' ': >/proc/sys/kernel/core_pattern'
try 'writes /usr' ': >/usr/probe'
try 'writes /' ': >/probe'
try 'writes /dev' ': >/dev/probe'
try 'reads memory of PID 1' ': </proc/1/mem'
try 'makes a user namespace' 'unshare -U true'
while read -r first second third rest; do
  case "$first $second" in
    'Max processes' | 'Max address') echo "$first $second=${rest% *}" ;;
    'Max open') echo "$first $second=$rest" ;;
  esac
done </proc/self/limits
