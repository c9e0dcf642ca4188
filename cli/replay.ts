/** `sluice replay`: shows what a configuration would have done to the requests of an access log. */
import { existsSync, realpathSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8'
import { HOST } from '../src/core/base/host.ts'
import type { ConfigOptions } from '../src/core/config/options.ts'
import { parseConfig } from '../src/core/config/parse.ts'
import { defaultFields } from '../src/features/defaults.ts'
import type { Call } from './call.ts'
import { readArguments, UsageError } from './options.ts'
import { say } from './paint.ts'
import { CONFIG_FILE, loadConfig, placed } from './project/load-config.ts'
import { showProgress } from './replay/progress-bar.ts'
import { findFiles, STDIN } from './replay/read/files.ts'
import { type Format, formats } from './replay/read/log.ts'
import { gate } from './replay/report/gate.ts'
import { toHtml } from './replay/report/html.ts'
import { toText } from './replay/report/text.ts'
import { type NamedConfig, type ReplayOptions, replay } from './replay/run.ts'

const usage = (
  title: string,
) => `Shows what a configuration would have done to the requests of an access log: who
would have been refused, when and by which policy. Decides with the code that is
deployed. Nothing leaves this machine.

  ${title} LOG… [options]

LOG is a file, a pattern such as 'logs/*.gz', or - for the standard input.
Compressed files are read.

  --config FILE           the configuration (default ${CONFIG_FILE})
  --against FILE          another configuration; shows the requests that the two
                          decide differently
  --format NAME           ${['auto', ...formats].join(', ').replace(/(.{1,50}) (?=\S)/g, `$1\n${' '.repeat(26)}`)}
                          (default auto, from the first lines)
  --pattern TEXT          the format of the lines as log_format of nginx, such
                          as '$remote_addr [$time_local] "$request" $status'
  --map FIELD=PATH        the place of a field in each line, such as
                          ip=client.address; repeatable
  --host NAME             the host of the requests, if the log has none
  --exact                 decide with Redis, even if the memory can
  --suggest POLICY        suggest a limit for this policy, or for per-ip without
                          one
  --refuse-clients SHARE  the clients that the suggested limit may refuse
                          (default 0.1%)
  --max-refused SHARE     exit with 1 if more of the requests are refused, such
                          as 0.1%
  --max-clients N         exit with 1 if more clients are refused
  --json                  print JSON
  --html FILE             also write the report as one HTML page
  --anonymize FILE        also write the log, with other addresses and without
                          queries and user agents
  --help                  show this text

Exits with 0; with 1 after an error, a limit or an expectation (expect) that is
exceeded; with 130 after Ctrl-C, which prints the report of the requests so far.`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const OPTIONS = {
  config: text,
  against: text,
  format: { type: 'string', default: 'auto' },
  pattern: text,
  map: { type: 'string', multiple: true },
  host: text,
  exact: flag,
  suggest: text,
  'refuse-clients': text,
  'max-refused': text,
  'max-clients': text,
  json: flag,
  html: text,
  anonymize: text,
} as const

type Values = NonNullable<ReturnType<typeof read>>['values']
const read = (args: string[], call: Call) => readArguments(args, OPTIONS, usage(call.title), call)

export async function main(args: string[], call: Call): Promise<void> {
  const given = read(args, call)
  if (given) await run(given.values, given.positionals)
}

/** The size at which the young generation of V8 stops growing, bytes. More makes a replay no faster. */
const YOUNG_BYTES = 16e6

/**
 * Limits the memory of V8. By default its heap grows to four times the memory in use, and its young generation to 64 MB.
 * @returns a function to call until the young generation has its size. Only its growth can be limited while Node runs
 */
function createHeapLimit(): () => void {
  setFlagsFromString('--heap-growing-percent=75')
  let mayGrow = true
  return () => {
    const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!
    if (young.space_size < YOUNG_BYTES === mayGrow) return
    mayGrow = !mayGrow
    setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`)
  }
}

async function run(values: Values, files: string[]): Promise<void> {
  const limits = {
    maxRefused: shareOf('--max-refused', values['max-refused']),
    maxClients: wholeOf('--max-clients', values['max-clients']),
  }
  const options = optionsOf(values, files)
  await keepInputs(values, files)
  const stopped = stopOnSignal()
  const bar = showProgress(process.stderr)
  const limitHeap = createHeapLimit()
  const report = await replay({
    ...options,
    config: await configOf(values),
    against: values.against === undefined ? undefined : await loaded(values.against),
    onProgress(progress) {
      limitHeap()
      bar.show(progress)
    },
    signal: stopped,
  }).finally(bar.clear)
  const { columns, isTTY } = process.stdout
  console.log(
    values.json
      ? // JSON leaves the second half of the control characters, and those that change the order of text.
        JSON.stringify(report, null, 2).replace(/(?!\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
          [...Array(character.length).keys()]
            .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, '0')}`)
            .join(''),
        )
      : toText(report, { ...(isTTY && { width: columns }), color: process.stdout.hasColors?.() }),
  )
  if (values.html !== undefined) await writeFile(values.html, await toHtml(report))
  for (const file of values.json ? [] : [values.html, values.anonymize]) {
    if (file !== undefined) say(`Wrote ${file}`)
  }
  // Standard input may still be open.
  if (stopped.aborted) process.exit(130)
  const reasons = gate(report, limits)
  for (const reason of reasons) console.error(reason)
  if (reasons.length > 0) process.exitCode = 1
}

function optionsOf(values: Values, files: string[]): Omit<ReplayOptions, 'config'> {
  const { format, pattern, host, suggest, exact, anonymize, html, config, against } = values
  if (files.length === 0 && process.stdin.isTTY) {
    throw new UsageError('LOG: expected a file, such as access.log, or - for the standard input')
  }
  if (format !== 'auto' && !formats.some((one) => one === format)) {
    wrong('--format', `one of ${['auto', ...formats].join(', ')}`, format)
  }
  if (pattern !== undefined && format !== 'auto') {
    throw new UsageError('--pattern describes the format: leave out --format')
  }
  if (host !== undefined && !HOST.test(host)) {
    wrong('--host', 'a host like www.example.com', host)
  }
  for (const [name, file] of Object.entries({ config, against })) {
    if (file === '') wrong(`--${name}`, 'a file', file)
  }
  const refuse = shareOf('--refuse-clients', values['refuse-clients'])
  for (const [name, file] of Object.entries({ html, anonymize })) {
    if (file === undefined) continue
    const isFolder = existsSync(file) && statSync(file).isDirectory()
    if (file === '' || isFolder) wrong(`--${name}`, 'a file', file)
    const folder = dirname(resolve(file))
    if (!existsSync(folder)) throw new UsageError(`--${name}: the folder ${folder} does not exist`)
  }
  return {
    files,
    log: { format: format as Format | 'auto', pattern, map: mapOf(values.map), host },
    suggest: suggest === undefined ? undefined : { policy: suggest, refuse },
    exact,
    anonymize,
  }
}

/** Rejects an output that would overwrite an input or the other output. */
async function keepInputs({ html, anonymize, ...values }: Values, files: string[]) {
  if (html === undefined && anonymize === undefined) return
  const real = (file: string) => (existsSync(file) ? realpathSync(file) : resolve(file))
  const logs = await findFiles(files.filter((name) => name !== STDIN))
  const used = new Map(logs.map(({ path }) => [real(path), 'the log']))
  used.set(real(values.config ?? CONFIG_FILE), 'the configuration')
  if (values.against !== undefined) used.set(real(values.against), 'the configuration of --against')
  for (const [name, file] of Object.entries({ html, anonymize })) {
    if (file === undefined) continue
    const use = used.get(real(file))
    if (use) throw new UsageError(`--${name}: ${file} is ${use}`)
    used.set(real(file), `the file of --${name}`)
  }
}

function mapOf(entries: string[] = []): Record<string, string> {
  const pairs = entries.map((entry) => {
    const [, field, path] = /^([^=]+)=(.+)$/s.exec(entry) ?? []
    return [field ?? wrong('--map', 'a field and its place, like ip=client.address', entry), path!]
  })
  return Object.fromEntries(pairs)
}

function shareOf(name: string, written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const [, percent] = /^(\d{1,3}(?:\.\d+)?) ?%$/.exec(written) ?? []
  if (percent === undefined || Number(percent) > 100) wrong(name, 'a share like 0.1%', written)
  return Number(percent) / 100
}

function wholeOf(name: string, written: string | undefined): number | undefined {
  if (written !== undefined && !/^\d{1,15}$/.test(written)) wrong(name, 'a whole number', written)
  return written === undefined ? undefined : Number(written)
}

function wrong(name: string, expected: string, got: string): never {
  throw new UsageError(`${name}: expected ${expected}, got ${JSON.stringify(got)}`)
}

/** The configuration. Without one a limit for each address can be suggested, and a log can be anonymized. */
async function configOf({ config, suggest, anonymize }: Values): Promise<NamedConfig> {
  const needsNone = suggest === 'per-ip' || (suggest === undefined && anonymize !== undefined)
  if (config === undefined && needsNone && !existsSync(CONFIG_FILE)) {
    return { file: 'no configuration', options: { policies: [] } }
  }
  if (config === undefined && !existsSync(CONFIG_FILE)) {
    throw new Error(
      `${CONFIG_FILE}: the file does not exist. To write one: npx sluice init. A log alone can suggest a limit: --suggest per-ip`,
    )
  }
  return loaded(config ?? CONFIG_FILE)
}

async function loaded(file: string): Promise<NamedConfig> {
  try {
    const options = (await loadConfig(file)) as ConfigOptions
    parseConfig(options, defaultFields)
    return { file, options }
  } catch (error) {
    throw new Error(placed(file, error as Error))
  }
}

/** The first Ctrl-C ends the replay, the second one the process. */
function stopOnSignal(): AbortSignal {
  const controller = new AbortController()
  process.on('SIGINT', () => {
    if (controller.signal.aborted) process.exit(130)
    controller.abort()
  })
  return controller.signal
}
