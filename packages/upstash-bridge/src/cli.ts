import { startBridge } from './bridge.ts'
import { type CliOptions, parseCli, UsageError, usage } from './cli-options.ts'
import { withoutPassword } from './connection.ts'
import { isLoopback } from './origin.ts'
import { startRedis } from './redis.ts'

/**
 * Runs until Ctrl-C, or until the Redis that it started ends.
 * @param command how the user calls this program, for the usage
 * @param onUsageError prints a mistake on the command line; defaults to the message and the usage
 */
export async function main(
  args: string[],
  command = 'node src/main.ts',
  onUsageError = (message: string) => console.error(`${message}\n\n${usage(command)}`),
): Promise<void> {
  try {
    const options = parseCli(args)
    if (options === 'help') return console.log(usage(command))
    await serve(options)
  } catch (error) {
    if (error instanceof UsageError) onUsageError(error.message)
    else console.error(error instanceof Error ? error.message : String(error))
    process.exitCode = 1
  }
}

async function serve({ redis: servers, tokens, logs, ...options }: CliOptions): Promise<void> {
  const isElsewhere = options.cluster ?? options.sentinel
  const isOwn = servers.length === 0 && !isElsewhere
  const own = isOwn ? await startRedis({ log: console.error }) : undefined
  const bridge = await startBridge({
    ...options,
    ...(isElsewhere ? {} : { redis: own?.url ?? servers }),
    // Databases with tokens of their own take no others.
    ...(servers.some(({ token }) => token !== options.token) ? {} : { tokens: tokens ?? [] }),
    ...(logs && { log: console.log }),
  }).catch(async (error) => {
    await own?.stop()
    throw error
  })
  let stopping = false
  const stop = async () => {
    if (stopping) process.exit(1) // a second Ctrl-C
    stopping = true
    await bridge.close()
    await own?.stop()
  }
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  // Set the signal handlers before printing: a program that reads these lines may stop this process at once.
  if (own) console.error(`Redis: ${own.source} at ${own.url}`)
  const isPrivate = isLoopback(options.host ?? '127.0.0.1')
  for (const { url, token } of servers) {
    console.error(`Redis: ${withoutPassword(url)}${isPrivate ? `, token ${token}` : ''}`)
  }
  for (const url of options.cluster ?? options.sentinel?.urls ?? []) {
    console.error(`Redis: ${withoutPassword(url)}`)
  }
  // Tokens of a bridge that other machines reach do not belong in its log.
  for (const token of Object.keys(bridge.stats())) {
    const line = `UPSTASH_REDIS_REST_TOKEN=${token}`
    console.log(`UPSTASH_REDIS_REST_URL=${bridge.url}${isPrivate ? `\n${line}` : ''}`)
  }
  own?.exited.then(async ({ lastLines }) => {
    if (stopping) return
    console.error(`Redis ended unexpectedly. Its last output:\n${lastLines}`)
    process.exitCode = 1
    await stop()
  })
}
