/** The bytes of bodies that an isolate reads at the same time. */
import { expect, test } from 'vitest'
import { type BodySource, bodySources } from '../../../../src/core/request/body-sources.ts'
import { readBody } from '../../../../src/features/bodies/read.ts'

const MIB = 1024 * 1024
const headers = { 'content-type': 'application/json' }
const NO_ROOM = { unreadable: 'other bodies use the memory for it' }

/** Reads a body of this source. */
function read(stream: object, timeoutMs = 60_000) {
  const request = new Request('https://a.test/', { method: 'POST', headers })
  bodySources.set(request, (() => ({ stream })) as BodySource)
  return readBody(request, { maxBytes: 2 * MIB, timeoutMs })
}
const readText = () => read(new Response('{"a":1}').body!)

/** A body of 1 MiB whose end the client withholds until `end`. */
function withheld(timeoutMs?: number) {
  let end = () => {}
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      end = () => controller.close()
      controller.enqueue(new TextEncoder().encode('1'.padStart(MIB)))
    },
    cancel() {
      end = () => {}
    },
  })
  return { result: read(stream, timeoutMs), end: () => end() }
}
/** Waits until all bytes that have arrived are counted. */
const counted = () => new Promise((resolve) => setTimeout(resolve))

test('Beyond 8 MiB no other body is begun, and those that have begun may use 16 MiB.', async () => {
  const first = Array.from({ length: 9 }, () => withheld())
  await counted()
  expect(await readText()).toEqual(NO_ROOM)
  for (const { end } of first) end()
  for (const { result } of first) expect(await result).toEqual({ value: 1 })
  expect(await readText()).toEqual({ value: { a: 1 } })

  const second = Array.from({ length: 20 }, () => withheld())
  await counted()
  for (const { end } of second) end()
  const results = await Promise.all(second.map(({ result }) => result))
  expect(results).toEqual([...Array(16).fill({ value: 1 }), ...Array(4).fill(NO_ROOM)])
  expect(await readText()).toEqual({ value: { a: 1 } })
})

test('A body that is given up, or fails, leaves its room to others.', async () => {
  const late = Array.from({ length: 9 }, () => withheld(1))
  for (const { result } of late) expect(await result).toHaveProperty('unreadable')
  const failing = () =>
    read(
      new ReadableStream({
        start(controller) {
          controller.enqueue(new Uint8Array(MIB))
        },
        pull(controller) {
          controller.error(new TypeError('the client has disconnected'))
        },
      }),
    )
  for (let n = 0; n < 9; n++) expect(await failing()).toHaveProperty('unreadable')
  expect(await readText()).toEqual({ value: { a: 1 } })
})

test('A body whose request the runtime has cancelled leaves its room after the timeout.', async () => {
  /** A stream that neither ends nor can be cancelled, as if the runtime ran no more code of its request. */
  const cancelled = () => {
    const chunks = [new Uint8Array(MIB)]
    return {
      getReader: () => ({
        read: () =>
          chunks.length > 0
            ? Promise.resolve({ done: false, value: chunks.pop() })
            : new Promise(() => {}),
        cancel: async () => {},
      }),
    }
  }
  for (let n = 0; n < 9; n++) read(cancelled(), 200)
  await counted()
  expect(await readText()).toEqual(NO_ROOM)
  await new Promise((resolve) => setTimeout(resolve, 250))
  expect(await readText()).toEqual({ value: { a: 1 } })
})
