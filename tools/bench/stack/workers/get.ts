import type { WorkerEnv } from '../variants.ts'

/** Makes one GET over Upstash's REST API. Returns the value. */
export async function get(env: WorkerEnv, client: string): Promise<unknown> {
  const response = await fetch(env.UPSTASH_REDIS_REST_URL, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${env.UPSTASH_REDIS_REST_TOKEN}`,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify(['GET', `bare:${client}`]),
  })
  const { result } = (await response.json()) as { result: unknown }
  return result
}
