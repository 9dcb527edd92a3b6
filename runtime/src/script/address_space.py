import resource, sys
limit, sys.argv[:3] = int(sys.argv[1]), sys.argv[2:3]
if not getattr(sys.flags, 'safe_path', False):
    sys.path[0] = sys.argv[0].rpartition('/')[0]
def hook(kind, error, trace, show=sys.excepthook):
    while trace and trace.tb_frame.f_code.co_filename == '<string>':
        trace = trace.tb_next
    show(kind, error.with_traceback(trace), trace)
sys.excepthook = hook
def start(path, limit, names, resource=resource):
    with open(path, 'rb') as file:
        source = file.read()
    for name in ('resource', 'sys', 'limit', 'hook', 'start'):
        names.pop(name, None)
    names['__file__'] = path
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    return compile(source, path, 'exec', dont_inherit=True)
exec(start(sys.argv[0], limit, globals()))
