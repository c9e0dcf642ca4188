import type { Parts, Slots } from '../../../src/stores/durable-objects/record.ts'

/** The parts of a subject in memory. */
export function memoryParts(): Parts {
  const logs = new Map<string, readonly number[]>()
  const slots = new Map<string, readonly Slots[]>()
  return {
    record: new Map(),
    log: (tag) => logs.get(tag) ?? [],
    setLog: (tag, times) => void logs.set(tag, times),
    slots: (tag) => slots.get(tag) ?? [],
    setSlots: (tag, taken) => void slots.set(tag, taken),
  }
}
