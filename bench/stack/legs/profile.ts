/** Profiles the CPU time of a Worker by source file, with the sampling profiler of V8, under a closed-loop load. */
import { readFile } from 'node:fs/promises'
import { SourceMap } from 'node:module'
import { startFarRedis } from '../bridge.ts'
import { measure } from '../measure.ts'
import type { Stack } from '../run.ts'
import type { VariantId } from '../variants.ts'
import { type CpuProfile, connectInspector } from './inspector.ts'

export interface Profile {
  id: VariantId
  of: string
  /** CPU time of the process per request in µs, all threads. */
  workerUs: number
  /** CPU time of each file per request in µs, largest first. Platform calls count for the file that makes them. */
  parts: { name: string; us: number }[]
}

interface Case {
  id: VariantId
  of: string
  exhausted: boolean
}

const CASES: Case[] = [
  {
    id: 'ours-unbatched',
    of: 'A request with its own call to Redis (batching off)',
    exhausted: false,
  },
  { id: 'ours', of: 'A request in a batch', exhausted: false },
  { id: 'ours', of: 'A refusal from the denial cache', exhausted: true },
]
const MS = 4_000

export async function measureProfile({ server, load, workers }: Stack): Promise<Profile[]> {
  const profiles: Profile[] = []
  const far = await startFarRedis(server.url, 10)
  try {
    for (const { id, of, exhausted } of CASES) {
      await server.send('FLUSHALL')
      const quotas = [{ limit: exhausted ? 1 : 1_000_000, windowMs: 3_600_000 }]
      const isolate = await workers.start(id, quotas, far, {}, { inspect: true })
      const order = { ports: [isolate.port], network: 0, clients: 1000, connections: 64 }
      try {
        await load.run({ ...order, requests: 20_000 }) // warms up the compilers
        const inspector = await connectInspector(isolate.inspectorPort!)
        const { workerUs = 0 } = await measure({ server, far, load }, [isolate.pid], {
          ...order,
          ms: MS,
        })
        await inspector.start()
        const { count } = await load.run({ ...order, ms: MS })
        const profile = await inspector.stop()
        profiles.push({ id, of, workerUs, parts: await partsOf(profile, workers.mapOf(id), count) })
      } finally {
        await isolate.stop()
      }
    }
  } finally {
    await far.stop()
  }
  return profiles
}

type Node = CpuProfile['nodes'][number]

async function partsOf(
  { nodes, samples, timeDeltas }: CpuProfile,
  mapFile: string,
  count: number,
): Promise<Profile['parts']> {
  const map = new SourceMap(JSON.parse(await readFile(mapFile, 'utf8')))
  const parents = new Map(
    nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])),
  )
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const names = new Map<number, string | undefined>()
  const nameOf = (node: Node): string | undefined => {
    if (!names.has(node.id)) {
      const parent = byId.get(parents.get(node.id) ?? -1)
      names.set(node.id, ownName(node, map) ?? (parent && nameOf(parent)))
    }
    return names.get(node.id)
  }
  const spent = new Map<string, number>()
  samples.forEach((id, index) => {
    const name = nameOf(byId.get(id)!)
    if (name) spent.set(name, (spent.get(name) ?? 0) + timeDeltas[index]!)
  })
  return [...spent].map(([name, us]) => ({ name, us: us / count })).sort((a, b) => b.us - a.us)
}

/** The file of a frame; `undefined` if the frame counts for its caller, or is idle time. */
function ownName(
  { callFrame: { functionName, url, lineNumber, columnNumber } }: Node,
  map: SourceMap,
) {
  if (functionName === '(idle)' || functionName === '(root)') return undefined
  if (functionName === '(garbage collector)') return 'garbage collection'
  if (functionName === '(program)') return 'workerd itself'
  if (!url) return undefined
  const entry = map.findEntry(lineNumber, columnNumber)
  const source = 'originalSource' in entry ? entry.originalSource : undefined
  if (!source) return undefined
  const [, dependency] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(source) ?? []
  return dependency ?? source.replace(/^.*?((?:src|dev)\/)/, '$1')
}
