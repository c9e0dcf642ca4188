/** Durable Objects as the store, in this process and in the time of a scene, with the same faults as the network to Redis. */
import { memoryObjects } from '../../test/support/memory-objects.ts'
import type { Scene } from './world.ts'
import { faultAt, SLOW_MS, WAY_MS } from './world.ts'

type ObjectNamespace = ReturnType<typeof memoryObjects>['objects']

/** @param Subject the class of the objects */
export function startObjects(Subject: unknown, { time, outages }: Omit<Scene, 'env'>) {
  const memory = memoryObjects(Subject as Parameters<typeof memoryObjects>[0])
  const names = new Set<string>()
  const failing = (message: string, kind: object) => Object.assign(new Error(message), kind)
  const binding: ObjectNamespace = {
    ...memory.objects,
    get: (id, options) => ({
      async fetch(url, init) {
        await time.sleep(WAY_MS)
        const fault = faultAt(outages, time.now)
        if (fault === 'down') throw failing('Network connection lost.', { retryable: true })
        if (fault === 'stopped') throw failing('The object is overloaded.', { overloaded: true })
        names.add(id as string)
        const response = await memory.objects.get(id, options).fetch(url, init)
        await time.sleep(fault === 'slow' ? SLOW_MS : WAY_MS)
        if (fault === 'lost') throw failing('Network connection lost.', { retryable: true })
        return fault === 'page' ? new Response('<html>', { status: 502 }) : response
      },
    }),
    jurisdiction: () => binding,
  }
  return {
    binding,
    /** The rows of the objects and their alarms, before and after the alarms have gone off. */
    async records(namespace: string): Promise<Record<string, unknown>> {
      const records: Record<string, unknown> = {}
      for (const name of [...names].sort()) {
        const own = name.replace(`${namespace}:`, '')
        const keep = (when: string) => {
          const { rows, alarmAt } = memory.at(name)
          records[`${own} ${when}`] = structuredClone({ rows: [...rows].sort(), alarmAt })
        }
        keep('before its alarm')
        await memory.alarm(name)
        keep('after its alarm')
      }
      return records
    },
  }
}
