import { openConnection } from './redis-connection.ts'

/** How often Redis ran each command while `run` did, inner calls of scripts included, by its own count. */
export async function commandsBetween(
  url: string,
  run: () => Promise<unknown>,
): Promise<Record<string, number>> {
  const client = await openConnection(url)
  try {
    const before = await counts()
    await run()
    const after = await counts()
    const difference = Object.entries(after).map(([name, count]) => [
      name,
      count - (before[name] ?? 0),
    ])
    return Object.fromEntries(difference.filter(([name, count]) => name !== 'info' && count !== 0))
  } finally {
    client.destroy()
  }

  async function counts(): Promise<Record<string, number>> {
    const text = String(await client.sendCommand(['INFO', 'commandstats']))
    return Object.fromEntries(
      [...text.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)].map(([, name, calls]) => [
        name,
        Number(calls),
      ]),
    )
  }
}
