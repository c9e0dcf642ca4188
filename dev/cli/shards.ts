/** `sluice shards`: moves clients between shards, and shows the state of each shard. */
import { existsSync } from 'node:fs'
import type { ConfigOptions } from '../../src/config/options.ts'
import { type Config, parseConfig } from '../../src/config/parse.ts'
import { CONFIG_FILE, loadConfig, placed } from '../project/load-config.ts'
import { openDatabases } from '../shards/database.ts'
import { finishMove, type MovePlan, moveShards, planMove } from '../shards/move.ts'
import { showMove } from '../shards/progress.ts'
import { statusesOf } from '../shards/status.ts'
import { statusText } from '../shards/status-text.ts'
import type { Call } from './call.ts'
import { readArguments } from './options.ts'

const usage = (
  title: string,
) => `Moves the quotas of clients to another list of shards while the Worker serves requests, and shows the
state of each shard. The Worker must use both lists first: shards([…], { moveFrom: […] }) in
${CONFIG_FILE}.

  ${title} move [options]
  ${title} status [options]

  --from NAMES   the old list, such as eu-1,eu-2 (default that of the configuration)
  --to NAMES     the new list, such as eu-1,eu-2,eu-3 (default that of the configuration)
  --rate N       move at most N keys a second (default 200)
  --dry-run      count the keys that would move, and change nothing
  --overwrite    delete records at new shards that are left from an earlier attempt
  --finish       remove the marks of a move whose list has left the configuration
  --config FILE  the configuration (default ${CONFIG_FILE})
  --help         show this text

Reads UPSTASH_REDIS_REST_URL_<SHARD> and UPSTASH_REDIS_REST_TOKEN_<SHARD> of each shard. If it fails or
is stopped, repeat it. Exits with 0 on success, and with 1 after an error or if a shard does not answer.`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const OPTIONS = {
  from: text,
  to: text,
  rate: { type: 'string', default: '200' },
  'dry-run': flag,
  overwrite: flag,
  finish: flag,
  config: { type: 'string', default: CONFIG_FILE },
} as const

type Values = NonNullable<ReturnType<typeof read>>['values']
const read = (args: string[], call: Call) => readArguments(args, OPTIONS, usage(call.title), call)

export async function main(args: string[], call: Call): Promise<void> {
  const given = read(args, call)
  if (!given) return
  const [command, ...others] = given.positionals
  if ((command !== 'move' && command !== 'status') || others.length > 0) {
    return call.onUsageError('Expected move or status')
  }
  const rate = Number(given.values.rate)
  if (!(rate > 0)) {
    return call.onUsageError(`--rate: expected a number above 0, got "${given.values.rate}"`)
  }
  const config = await configOf(given.values.config)
  if (command === 'status') await showStatus(config, given.values)
  else if (given.values.finish) await finish(config, given.values)
  else await move(config, given.values, rate)
}

async function configOf(file: string): Promise<Config> {
  if (!existsSync(file)) throw new Error(`${file}: the file does not exist`)
  try {
    return parseConfig((await loadConfig(file)) as ConfigOptions)
  } catch (error) {
    throw new Error(placed(file, error as Error))
  }
}

async function move(config: Config, values: Values, rate: number): Promise<void> {
  const plan = planOf(config, values)
  if (values['dry-run']) {
    const counts = await planMove(plan)
    if (counts.size === 0) console.log('No key would move.')
    for (const [path, count] of counts) console.log(`${path}: ${number(count)} keys would move`)
    return
  }
  const bar = showMove(process.stderr)
  const { moved, strays } = await moveShards({
    ...{ ...plan, rate, overwrite: values.overwrite, onProgress: bar.show },
  }).finally(bar.clear)
  console.log(`${number(moved)} keys have moved. Nothing is left.`)
  if (strays > 0) {
    console.error(
      `${number(strays)} keys were written to the old shards after the beginning: a Worker without "moveFrom" was still running. The quotas of these clients may have started anew.`,
    )
  }
  console.log('After a minute, remove "moveFrom" from the configuration and deploy.')
}

/** The move of the configuration. The options may repeat it. */
function planOf({ shards, namespace }: Config, values: Values): MovePlan {
  if (!shards?.moveFrom) {
    throw new Error(
      `${values.config} has no "moveFrom": the Worker would decide moved keys at their old place. Add shards([…], { moveFrom: […] }) with the new and the old list, deploy it, and run this command again.`,
    )
  }
  const layouts = { from: shards.moveFrom, to: shards.names }
  for (const side of ['from', 'to'] as const) {
    const names = namesOf(values[side])
    const known = layouts[side]
    const unknown = names?.find((name) => !known.includes(name))
    if (unknown !== undefined) {
      throw new Error(
        `--${side}: ${JSON.stringify(unknown)} is not in the ${side === 'from' ? 'old' : 'new'} list of ${values.config}: ${known.join()}`,
      )
    }
    const missing = names && known.find((name) => !names.includes(name))
    if (missing !== undefined) {
      throw new Error(
        `--${side}: ${JSON.stringify(missing)} is missing, which ${values.config} has`,
      )
    }
  }
  if (sameNames(layouts.from, layouts.to)) {
    throw new Error(
      `The old and the new list are equal: ${shards.names.join()}. No key would move.`,
    )
  }
  return { ...layouts, namespace, databases: openDatabases(shards.databases, process.env) }
}

async function finish({ shards, namespace }: Config, values: Values): Promise<void> {
  const [from, to = shards?.names] = [namesOf(values.from), namesOf(values.to)]
  if (shards?.moveFrom) {
    throw new Error(
      `${values.config} still has "moveFrom". Remove it and deploy first: without the marks, a Worker that knows both lists would decide at the old shards again.`,
    )
  }
  if (!from || !to) throw new Error('--finish needs --from with the old list of the move.')
  const databases = openDatabases([...new Set([...to, ...from])], process.env)
  const removed = await finishMove({ from, to, namespace, databases })
  console.log(`${number(removed)} marks were removed. The move is finished.`)
}

async function showStatus(config: Config, values: Values): Promise<void> {
  const { namespace } = config
  const to = namesOf(values.to) ?? config.shards?.names
  if (!to) throw new Error(`${values.config} has no "shards". Or name them with --to.`)
  const from = namesOf(values.from) ?? config.shards?.moveFrom
  const databases = openDatabases([...new Set([...to, ...(from ?? [])])], process.env)
  const rows = await statusesOf(databases, { from, to, namespace })
  console.log(statusText(rows, from))
  for (const row of rows) {
    if (!('error' in row)) continue
    console.error(row.error.message)
    process.exitCode = 1
  }
}

const namesOf = (list: string | undefined) => list?.split(',').map((name) => name.trim())

const sameNames = (one: readonly string[], other: readonly string[]) =>
  one.length === other.length && one.every((name) => other.includes(name))

const number = (value: number) => value.toLocaleString('en')
