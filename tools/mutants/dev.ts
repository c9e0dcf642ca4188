import { type Mutant, mutantsOf } from './mutant.ts'

const tally = mutantsOf('cli/replay/report/tally.ts', 'test/cli/replay')
const counter = mutantsOf('cli/replay/report/counter.ts', 'test/cli/replay')
const gate = mutantsOf('cli/replay/report/gate.ts', 'test/cli/replay')
const html = mutantsOf('cli/replay/report/html.ts', 'test/cli/replay')
const memory = mutantsOf('cli/replay/decide/memory.ts', 'test/cli/replay')
const reads = mutantsOf('cli/replay/decide/reads.ts', 'test/cli/replay')
const replayable = mutantsOf('cli/replay/decide/replayable.ts', 'test/cli/replay')
const remedies = mutantsOf('cli/replay/read/remedies.ts', 'test/cli/replay')
const clients = mutantsOf('cli/replay/decide/clients.ts', 'test/cli/replay')
const values = mutantsOf('cli/replay/read/values.ts', 'test/cli/replay')
const detect = mutantsOf('cli/replay/read/detect.ts', 'test/cli/replay')
const pattern = mutantsOf('cli/replay/read/formats/pattern.ts', 'test/cli/replay')
const logError = mutantsOf('cli/replay/read/log.ts', 'test/cli/replay')
const seconds = mutantsOf('cli/replay/decide/seconds.ts', 'test/cli/replay')
const sort = mutantsOf('cli/replay/read/sort.ts', 'test/cli/replay')
const anonymize = mutantsOf('cli/replay/anonymize.ts', 'test/cli/replay')
const peaks = mutantsOf('cli/replay/suggest/peak-counter.ts', 'test/cli/replay')
const suggest = mutantsOf('cli/replay/suggest/suggest.ts', 'test/cli/replay')
const replay = mutantsOf('cli/replay.ts', 'test/cli')
const explain = mutantsOf('cli/explain/explain.ts', 'test/cli')
const explainCli = mutantsOf('cli/explain/cli.ts', 'test/cli')
const why = mutantsOf('cli/explain/why.ts', 'test/cli')
const host = mutantsOf('cli/project/hosts.ts', 'test/cli')
const checkRun = mutantsOf('cli/check/run.ts', 'test/cli')
const shield = mutantsOf('cli/check/shield.ts', 'test/cli')
const policies = mutantsOf('cli/check/policies.ts', 'test/cli')
const init = mutantsOf('cli/init/init.ts', 'test/cli')
const objectLines = mutantsOf('cli/project/object-lines.ts', 'test/cli')
const manager = mutantsOf('cli/project/package-manager.ts', 'test/cli')
const docs = mutantsOf('cli/docs.ts', 'test/cli')
const span = mutantsOf('src/features/observe/trace.ts', 'test/unit')
const source = mutantsOf('cli/init/source.ts', 'test/cli')
const confirm = mutantsOf('cli/init/confirm.ts', 'test/cli')
const manifest = mutantsOf('cli/init/package-json.ts', 'test/cli')
const reload = mutantsOf('cli/dev/reload.ts', 'test/cli')
const watching = mutantsOf('cli/dev/watch.ts', 'test/cli')
const release = mutantsOf('tools/release/version.ts', 'test/tools')
const session = mutantsOf('cli/dashboard/session.ts', 'test/cli')
const dashboardServer = mutantsOf('cli/dashboard/server.ts', 'test/cli')
const dashboardForward = mutantsOf('cli/dashboard/forward.ts', 'test/cli')
const guard = mutantsOf('cli/dashboard/guard.ts', 'test/cli')

/** Mutants of `tools/`. */
export const devMutants: Mutant[] = [
  html(
    'refused requests that are easy to see have a second picture',
    'highest < LOW * highestOf([behind!])',
    'highest <= highestOf([behind!])',
    'report-html',
  ),
  html(
    'the second picture has the scale of all requests',
    'Refused requests alone.`, refused)',
    'Refused requests alone.`, series)',
    'report-html',
  ),
  tally(
    'a line before the one before it moves the end of the report back',
    'this.#to = Math.max(this.#to, line.time)',
    'this.#to = line.time',
    'tally',
  ),
  tally(
    'a request that is refused counts as one that a shadow policy would refuse',
    'spread.allowed && spread.shadowRefusedBy.length > 0',
    'spread.shadowRefusedBy.length > 0',
    'tally',
  ),
  tally(
    'a refusal in a burst only is not counted',
    'if (!spread.allowed || !burst.allowed) {',
    'if (!spread.allowed) {',
    'tally-recount',
  ),
  counter(
    'the worst minute is the last one of several equal ones',
    'refused.high > (this.#worst?.refused.high ?? 0)',
    'refused.high >= (this.#worst?.refused.high ?? 0)',
    'tally-recount',
  ),
  counter(
    'a minute begins with its first refusal',
    'this.#minute = time - (time % MINUTE_MS)',
    'this.#minute = time',
    'tally-recount',
  ),
  gate(
    'as many refused clients as allowed exceed the limit',
    'clients.high > maxClients',
    'clients.high >= maxClients',
    'report-text',
  ),
  gate(
    'the gate reads the lower bound of the refused requests',
    'share.high > maxRefused',
    'share.low > maxRefused',
    'report-text',
  ),
  memory(
    'a sliding window is charged for a response that countOnly does not name',
    'if (!isRefunded(limit, status)) states.charge(limit, run)',
    'states.charge(limit, run)',
    'decide-cases',
  ),
  memory(
    'a fixed window is charged for a response that countOnly does not name',
    'if (!state || isRefunded(limits[index]!, status)) continue',
    'if (!state) continue',
    'decide-cases',
  ),
  memory(
    'a policy in shadow refuses',
    "if (!outcome.allowed && policy.mode === 'enforce') isAdmitted",
    'if (!outcome.allowed) isAdmitted',
    'decide-cases',
  ),
  memory(
    'a request may use the units that reserve keeps free',
    'withFloor(policy.algorithm, period ? { ...policy, period } : policy, floor)',
    'period ? { ...policy, period } : policy',
    'decide-deployed',
  ),
  replayable(
    'requests of one address have one match, whatever their queries',
    "property === 'address' || property === 'status'",
    "['address', 'status', 'query', 'search', 'pathParameters'].includes(property)",
    'decide-cases',
  ),
  replayable(
    'the marks of overrides are read as those of limits',
    '({ ...policy, overrides: false })',
    'policy',
    'decide-deployed',
  ),
  replayable(
    'a policy is replayed without a field that the log lacks',
    'return reasons.length === 0',
    'return true',
    'decide-not-replayed',
  ),
  reads(
    'the excluded requests of a condition read nothing',
    '...not.flatMap((other) => conditionReads(part, other)),',
    '',
    'decide-not-replayed',
  ),
  reads(
    'the rules of reserve read nothing',
    "rules.flatMap((rule) => conditionReads('its reserve', rule.condition))",
    '[]',
    'decide-not-replayed',
  ),
  reads(
    'only the first field of a condition is read',
    'Object.entries(fields).flatMap(([field, value]) =>',
    'Object.entries(fields).slice(0, 1).flatMap(([field, value]) =>',
    'decide-not-replayed',
  ),
  reads(
    'a key function runs without its context',
    "if (name === 'context') throw",
    "if (name === 'never') throw",
    'decide-not-replayed',
  ),
  remedies(
    'the remedy names another variable of nginx',
    "replaceAll('-', '_')",
    "replaceAll('-', '-')",
    'decide-not-replayed',
  ),
  clients(
    'a replay counts by a header that clients have written',
    'return proxies.length * 2 > lines.length || isOne',
    'return true',
    'clients',
  ),
  clients(
    'the connection does not count for a trusted proxy',
    "remoteAddress: line.ip ?? ''",
    "remoteAddress: ''",
    'clients',
  ),
  values(
    'the first address of a list counts',
    "text.slice(text.lastIndexOf(',') + 1)",
    "text.split(',', 1)[0]!",
    'read-formats',
  ),
  detect(
    'a prefix of a collector becomes the host of the requests',
    'first.count < least',
    'first.count <= least',
    'read-formats',
  ),
  pattern(
    'an address of IPv6 ends at its first colon',
    "line.lastIndexOf(':', word < 0 ? line.length : word)",
    "line.indexOf(':', from)",
    'read-patterns',
  ),
  logError('the names in an error command the terminal', "'\\u00b7'))", "'$&'))", 'read-hostile'),
  seconds(
    'the places of a second begin where those of the second before ended',
    'start = second\n          taken = 0',
    'start = second',
    'seconds',
  ),
  sort(
    'a line of the oldest second that is kept passes the others of this second',
    'if (second < this.first) {',
    'if (second <= this.first) {',
    'read-order',
  ),
  anonymize(
    'the query stays in an anonymous log',
    "target: target.split('?', 1)[0]!",
    'target',
    'anonymize',
  ),
  peaks(
    'a window counts an earlier one that is not the one before it',
    'last === (window - 1) >>> 0 ? block[at + CURRENT]! : 0',
    'block[at + CURRENT]!',
    'peaks',
  ),
  peaks(
    'the units of the window before are rounded down',
    'Math.ceil((block',
    'Math.floor((block',
    'peaks',
  ),
  suggest(
    'a request whose status is unknown is refunded',
    '  status === undefined ||\n',
    '',
    'suggest',
  ),
  replay(
    'a replay whose gate fails exits with 0',
    'if (reasons.length > 0) process.exitCode = 1',
    '',
    'replay-command',
  ),
  explain(
    'a request with one key gets a note about the slots of a cluster',
    "'cluster') && keys.size > 1",
    "'cluster') && keys.size > 0",
    'explain-cases',
  ),
  explainCli(
    'a request with a body is a GET',
    "method = body === undefined ? 'GET' : 'POST'",
    "method = 'GET'",
    'explain-cases',
  ),
  why(
    'a missing key of an enforced policy is "not enforced in shadow"',
    "onMissingKey === 'refuse' && mode === 'shadow'",
    "onMissingKey === 'refuse'",
    'explain-cases',
  ),
  checkRun(
    'a check that fails lets the command succeed',
    '!== UNREAD) failed += 1',
    '!== UNREAD) failed += 0',
    'check',
  ),
  host(
    'takes a module of sluice build for an app',
    'if (source === file) modules.add(path)',
    'if (source === file) files.set(path, plain(text))',
    'hosts',
  ),
  host(
    'takes the module of another configuration for its own',
    'modules.delete(path)',
    'modules.add(path)',
    'build',
  ),
  host(
    'judges limits by name and key as a gateway',
    'Object(limits) === limits && policies === undefined',
    'false',
    'hosts',
  ),
  shield(
    'a shield with another limit than its binding passes',
    'limit === shield.limit',
    'limit !== undefined',
    'project',
  ),
  policies(
    'the check does not read the variable ORIGIN of wrangler.toml',
    'lintWorker(config, vars, host.parse)',
    'lintWorker(config, {}, host.parse)',
    'check',
  ),
  source(
    'init asks a registry for a package that came from a tarball',
    "if (!resolved.startsWith('file:')) return undefined",
    'return undefined',
    'init',
  ),
  init(
    'init asks before it writes a file again that has not changed',
    'if (before === after) continue',
    '',
    'init',
  ),
  objectLines(
    'exports are advised beside migrations',
    '!has.migrations && (has.exports || knowsExports(project))',
    'has.exports || knowsExports(project)',
    'check-objects',
  ),
  objectLines(
    'a second field of bindings replaces the first one',
    'return has.bindings',
    'return !has.bindings',
    'check-objects',
  ),
  manager(
    'the field of package.json has more weight than a lockfile',
    'locked.length > 0 ? locked : named',
    'named.length > 0 ? named : locked',
    'package-manager',
  ),
  docs('a heading in a block of code ends a section', 'inCode = !inCode', 'inCode = false', 'docs'),
  span(
    'a request that is not sampled gets attributes',
    'span?.isTraced ? span : undefined',
    'span',
    'features/observe/destinations',
  ),
  confirm('every word with y overwrites files', '/^y(es)?$/i', '/^y/i', 'init'),
  manifest(
    'init adds a package again that is in another group',
    'GROUPS.some((group) =>',
    "['devDependencies'].some((group) =>",
    'init',
  ),
  manifest(
    'init replaces the scripts of the user',
    'if (own === undefined || isPlaceholder(own)) scripts[name] = command',
    'if (own !== command) scripts[name] = command',
    'init',
  ),
  reload('a save without a change is logged', 'logged !== running!.made', 'true', 'reload'),
  reload('a reload that loads twice is not logged', 'logged !== running!.made', 'false', 'reload'),
  reload(
    'an edit while the first Worker starts is lost',
    'if (changed) void reload()',
    '',
    'reload',
  ),
  watching(
    'an edit before the folders are watched anew is lost',
    'const before = others',
    'closeAll(others)\n      const before: FSWatcher[] = []',
    'watch',
  ),
  watching(
    'a folder is watched only as it was at the start',
    'return [add(folder, false)]',
    'return folder.startsWith(src) ? [] : [add(folder, false)]',
    'watch',
  ),
  watching('a folder that is moved away does not count', 'if (isMoved || ', 'if (', 'watch'),
  watching(
    'an imported file that is no module does not count',
    'isOurs(name) || imported.has(join(folder, name))',
    'isOurs(name)',
    'watch',
  ),
  watching(
    'the module that sluice dev writes counts as an edit',
    "name === null || name === 'sluice.built.ts'",
    'name === null',
    'watch',
  ),
  reload(
    'a request in flight ends with its Worker',
    'if (target.inFlight > 0) await',
    'if (target.inFlight < 0) await',
    'reload',
  ),
  reload(
    'a file that appears after a failed bundle is not noticed',
    'if (!isBundled && !stopping) retry',
    'if (isBundled && !stopping) retry',
    'reload',
  ),
  release(
    'a minor version keeps the patch number',
    'at < part ? value : at === part ? value + 1 : 0',
    'at === part ? value + 1 : value',
    'release',
  ),
  release(
    'only an older major version is refused',
    'changed.find((difference) => difference !== 0)! < 0',
    'changed[0]! < 0',
    'release',
  ),
  session(
    'any cookie of the name opens the dashboard',
    'name === nameOf(request) && accepts(value)',
    'name === nameOf(request)',
    'dashboard-server',
  ),
  session(
    'pages of other sites send the cookie',
    'SameSite=Strict',
    'SameSite=Lax',
    'dashboard-server',
  ),
  dashboardServer(
    'the calls of the dashboard need no session',
    'if (!session.isOpen(request))',
    'if (false as boolean)',
    'dashboard-server',
  ),
  dashboardForward(
    'an answer of the Worker is read to its end',
    'textUpTo(MAX_ANSWER,',
    'textUpTo(64 * MAX_ANSWER,',
    'dashboard-server',
  ),
  guard(
    'a host name that begins like a loopback one reaches the dashboard',
    '|localhost)(:\\d+)?$/',
    '|localhost)/',
    'dashboard-server',
  ),
  guard(
    'a write without an origin is forwarded',
    "if (method !== 'GET' && origin === undefined)",
    "if (method === 'GET' && origin === undefined && site === 'none')",
    'dashboard-server',
  ),
]
