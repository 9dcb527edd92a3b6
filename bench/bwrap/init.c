/*
 * PID 1 for the bubblewrap side: equal in role to the C init that the Python peer ships.
 * It becomes non-dumpable, sets the guest's process limit, passes signals on, reaps what ends,
 * and leaves with the guest's status. It does nothing else.
 *
 * Usage: init NPROC PROGRAM [ARGUMENT...]
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INIT_FAILED = 125, NOT_EXECUTED = 127 };

static void become_guest(rlim_t processes, const sigset_t *before, char **argv)
{
    const struct rlimit limit = { processes, processes };

    setpgid(0, 0);
    if (sigprocmask(SIG_SETMASK, before, NULL) != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0)
        _exit(INIT_FAILED);
    execvp(argv[0], argv);
    _exit(NOT_EXECUTED);
}

/* The exit code to leave with once the guest itself has ended, or -1. */
static int reap(pid_t guest)
{
    int status, code = -1;
    pid_t ended;

    while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
        if (ended == guest)
            code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return code;
}

int main(int argc, char **argv)
{
    sigset_t every, before;
    pid_t guest;
    int code = -1;

    if (argc < 3)
        return INIT_FAILED;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    sigfillset(&every);
    sigprocmask(SIG_BLOCK, &every, &before);
    guest = fork();
    if (guest < 0)
        return INIT_FAILED;
    if (guest == 0)
        become_guest(strtoul(argv[1], NULL, 10), &before, argv + 2);
    setpgid(guest, guest);
    while (code < 0) {
        siginfo_t arrived;
        const int number = sigwaitinfo(&every, &arrived);

        if (number == SIGCHLD)
            code = reap(guest);
        else if (number > 0)
            kill(-guest, number);
    }
    return code;
}
