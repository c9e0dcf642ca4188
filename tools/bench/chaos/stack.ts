import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createClient } from 'redis'
import { afterDeath, type RunningRedis, startBridge, startRedis } from 'sluice-upstash-bridge'
import { startOrigin } from '../../../cli/dev/origin.ts'
import { type FaultText, startFaults } from '../../../test/support/fault-proxy/index.ts'
import { startWorker } from '../../worker.ts'
import { config } from './policies.ts'

const garbage: FaultText[] = [
  'garbage',
  'html=502',
  'truncated',
  'wrong-types=fraction',
  'wrong-shape',
  'json={}',
  'html=200',
  'redis-error',
]

/** The stack under load, and the faults that it can have. */
export type ChaosStack = Awaited<ReturnType<typeof startChaosStack>>

/** Starts the whole stack on free loopback ports: origin, Worker, fault proxy, bridge and Redis. */
export async function startChaosStack() {
  const redis = await startVictim()
  const bridge = await startBridge({ redis: redis.url, token: 'chaos' })
  const faults = await startFaults({ target: bridge.url })
  const origin = await startOrigin()
  const worker = await startWorker(
    fileURLToPath(new URL('../../../.cache/workers/any-config', import.meta.url)),
    {
      env: {
        UPSTASH_REDIS_REST_URL: faults.url,
        UPSTASH_REDIS_REST_TOKEN: bridge.token,
        ORIGIN: origin.url,
        CONFIG: JSON.stringify(config),
      },
    },
  )

  return {
    ...redis,
    worker,
    faults,
    delay: (ms: number) => faults.set(ms > 0 ? `delay=${ms}` : null),
    spoil: (turn: number | undefined) =>
      faults.set(turn === undefined ? null : garbage[turn % garbage.length]!),
    async stop() {
      await worker.stop()
      await faults.close()
      await Promise.all([bridge.close(), origin.close()])
      await redis.stop()
    },
  }
}

/** Starts a Redis to kill and to suspend. */
export async function startVictim() {
  delete process.env.REDIS_URL // this Redis is killed, so always start a new one
  let redis = await startRedis()
  let pid = await pidOf(redis)
  let killed = false
  const { url } = redis
  return {
    url,
    /** Kills Redis, which loses its counters. */
    async kill() {
      killed = true
      process.kill(pid, 'SIGKILL')
      await redis.exited
    },
    /** Starts an empty Redis on the same port. */
    async restart() {
      redis = await startAgain(Number(new URL(url).port))
      pid = await pidOf(redis)
      killed = false
    },
    /** Suspends Redis with its connections open. @returns a function that resumes it */
    pause() {
      const stopped = pid
      process.kill(stopped, 'SIGSTOP')
      // A suspended Redis does not react to the SIGTERM of its own watchdog.
      const cancel = afterDeath('kill -CONT "$1" 2>/dev/null', String(stopped))
      return () => {
        cancel()
        process.kill(stopped, 'SIGCONT')
      }
    },
    /** The number of scripts that Redis has. */
    scripts: () =>
      ask(redis, async (client) =>
        Number(/number_of_cached_scripts:(\d+)/.exec(await client.info('memory'))![1]),
      ),
    async flushScripts() {
      await ask(redis, (client) => client.sendCommand(['SCRIPT', 'FLUSH']))
    },
    async stop() {
      if (!killed) await redis.stop()
    },
  }
}

/** Starts Redis again. Retries, since an outgoing connection may use the port for a short time. */
async function startAgain(port: number): Promise<RunningRedis> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startRedis({ port })
    } catch (error) {
      if (attempt === 20) throw error
      await sleep(100)
    }
  }
}

const pidOf = (redis: RunningRedis) =>
  ask(redis, async (client) => Number(/process_id:(\d+)/.exec(await client.info('server'))![1]))

async function ask<Result>(
  { url }: RunningRedis,
  work: (client: ReturnType<typeof createClient>) => Promise<Result>,
): Promise<Result> {
  const client = createClient({ url })
  client.on('error', () => {})
  await client.connect()
  return work(client as never).finally(() => client.destroy())
}
