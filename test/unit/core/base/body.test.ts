import { expect, test, vi } from 'vitest'
import { readBytes } from '../../../../src/core/base/body.ts'

const streamOf = (...sizes: number[]) => {
  const cancel = vi.fn(() => Promise.reject(new Error('cancelled')))
  let next = 0
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const size = sizes[next++]
        if (size === undefined) controller.close()
        else controller.enqueue(new Uint8Array(size).fill(next))
      },
      cancel,
    },
    { highWaterMark: 0 },
  )
  return { stream, cancel, pulls: () => next }
}

test('A body of exactly the maximum size is read, with its chunks in order.', async () => {
  const bytes = await readBytes(streamOf(2, 0, 3).stream, 5)
  expect([...bytes!]).toEqual([1, 1, 3, 3, 3])
})

test('A body that is one byte too long is cancelled and not read further.', async () => {
  const { stream, cancel, pulls } = streamOf(2, 4, 100)
  expect(await readBytes(stream, 5)).toBeUndefined()
  expect(cancel).toHaveBeenCalledOnce()
  expect(pulls()).toBe(2)
})

test('An absent body and an empty body are read as no bytes.', async () => {
  expect(await readBytes(null, 5)).toEqual(new Uint8Array())
  expect(await readBytes(streamOf().stream, 5)).toEqual(new Uint8Array())
})

test('The promise rejects if the body fails.', async () => {
  const stream = new ReadableStream({ pull: () => Promise.reject(new Error('reset')) })
  await expect(readBytes(stream, 5)).rejects.toThrow('reset')
})
