import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { otlpSink } from '../../../../src/features/observe/otlp.ts'
import type { Counts } from '../../../../src/features/observe/report.ts'
import { noCounts, observedCounts, oneSeries } from '../../../support/observed-counts.ts'
import { type readOtlp, startCollector } from '../../../support/otlp-collector.ts'

let collector: Awaited<ReturnType<typeof startCollector>>
beforeEach(async () => {
  collector = await startCollector()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await collector.stop()
})

const send = async (counts: Counts = observedCounts(), env: Record<string, unknown> = {}) =>
  otlpSink(collector.url).send(counts, env)

/** The points of a metric: its labels and its value. */
function valuesOf(name: string) {
  const points = collector.reports().at(-1)!.metrics.get(name)?.points ?? []
  return points.map(({ labels, value }) => [...Object.values(labels), value])
}

describe('the report', () => {
  test('The collector reads the numbers that were sent.', async () => {
    await send()
    expect(valuesOf('sluice.decisions')).toEqual([
      ['api', 'allowed', 'store', 120],
      ['api', 'limited', 'cache', 7],
      ['', 'allowed', 'list', 3],
    ])
    expect(valuesOf('sluice.units')).toEqual([
      ['api', 'allowed', 'store', 240],
      ['api', 'limited', 'cache', 14],
    ])
    expect(valuesOf('sluice.near_limit')).toEqual([['api', 19]])
    expect(valuesOf('sluice.store.calls')).toEqual([[100]])
    expect(valuesOf('sluice.store.billed_commands')).toEqual([[302]])
    expect(valuesOf('sluice.store.errors')).toEqual([['timeout', 2]])
    const [{ metrics, resource, scope }] = collector.reports() as [ReturnType<typeof readOtlp>]
    expect(metrics.get('sluice.store.call.duration')).toMatchObject({
      unit: 's',
      points: [
        {
          histogram: {
            count: 100n,
            sum: 0.8125,
            buckets: [60n, 30n, 9n, 1n],
            bounds: [0.005, 0.01, 0.05],
          },
        },
      ],
    })
    expect(resource).toEqual({
      'service.name': 'sluice',
      'service.instance.id': expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    expect(scope).toBe('sluice')
  })

  test('Each point has the times of the counts in nanoseconds and the documented labels.', async () => {
    await send()
    for (const { points } of collector.reports()[0]!.metrics.values()) {
      for (const { start, end } of points) {
        expect([start, end]).toEqual([1_790_000_000_000_000_000n, 1_790_000_010_000_000_000n])
      }
    }
    const [point] = collector.reports()[0]!.metrics.get('sluice.decisions')!.points
    expect(point!.labels).toEqual({
      'sluice.policy': 'api',
      'sluice.outcome': 'allowed',
      'sluice.decided_by': 'store',
    })
  })

  test('A number that is not an integer is a double.', async () => {
    await send(noCounts({ series: [oneSeries({ units: 2.5 })] }))
    expect(valuesOf('sluice.units')).toEqual([['api', 'allowed', 'store', 2.5]])
  })

  test('Counts of nothing are not sent.', async () => {
    await send(noCounts())
    expect(collector.received).toEqual([])
  })

  test('Names and codes of any characters arrive unchanged.', async () => {
    const policy = '"}],"x":[{"\\u0000\u2028</script>🐟\0'
    const store = { ...noCounts().store, errors: { [policy]: 1 } }
    await send(noCounts({ series: [oneSeries({ policy })], store }))
    expect(valuesOf('sluice.decisions')).toEqual([[policy, 'allowed', 'store', 1]])
    expect(valuesOf('sluice.store.errors')).toEqual([[policy, 1]])
  })

  test('The reports of an isolate name the same instance, and those of another isolate name another.', async () => {
    const sink = otlpSink(collector.url)
    await sink.send(observedCounts(), { OTEL_SERVICE_NAME: 'shop' })
    await sink.send(observedCounts(), { OTEL_SERVICE_NAME: 'shop' })
    await send()
    const [first, second, third] = collector.reports().map(({ resource }) => resource)
    expect(first!['service.name']).toBe('shop')
    expect(second).toEqual(first)
    expect(third!['service.instance.id']).not.toBe(first!['service.instance.id'])
  })

  test('The name of the sink has the host of the collector, and no secret of the URL.', () => {
    expect(otlpSink('https://collector.example.com:4318/v1/metrics?key=secret').name).toBe(
      'otlp:collector.example.com:4318',
    )
  })
})

describe('OTEL_EXPORTER_OTLP_HEADERS', () => {
  test('The header fields of the variable are sent with the report.', async () => {
    const OTEL_EXPORTER_OTLP_HEADERS =
      'authorization=Bearer%20abc%2C1==, x-team = edge ,content-type=text/plain,'
    await send(observedCounts(), { OTEL_EXPORTER_OTLP_HEADERS })
    expect(collector.received[0]).toMatchObject({
      path: '/v1/metrics',
      headers: {
        authorization: 'Bearer abc,1==',
        'x-team': 'edge',
        'content-type': 'application/json',
      },
    })
  })

  test.each(['secret', '=secret', 'x y=secret', 'x=%E0%A4secret', 'x=secret%0A1'])(
    'The value "%s" is an error that does not contain it.',
    async (OTEL_EXPORTER_OTLP_HEADERS) => {
      const error = await send(observedCounts(), { OTEL_EXPORTER_OTLP_HEADERS }).catch((one) => one)
      expect(error.message).toBe(
        'OTEL_EXPORTER_OTLP_HEADERS: expected name=value pairs separated by commas, each value percent-encoded',
      )
      expect(collector.received).toEqual([])
    },
  )
})

describe('a collector that does not take the report', () => {
  test.each([301, 400, 429, 500, 503])('The status %i is an error.', async (status) => {
    collector.answer = (response) =>
      response.writeHead(status, { location: '/elsewhere' }).end('a text of the server')
    await expect(send()).rejects.toThrow(new RegExp(`^the server answered ${status}$`))
    expect(collector.received).toHaveLength(1)
  })

  test('A collector that hangs is an error after the deadline.', async () => {
    const { timeout } = AbortSignal
    const deadline = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(50))
    collector.answer = () => {}
    await expect(send()).rejects.toThrow('the server did not answer within 5000 ms')
    expect(deadline).toHaveBeenCalledWith(5000)
  })

  test('A collector that hangs within its answer is an error after the deadline.', async () => {
    const { timeout } = AbortSignal
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => timeout(50))
    collector.answer = (response) => response.write('{')
    await expect(send()).rejects.toThrow('the server did not answer within 5000 ms')
  })

  test('A collector that is down is an error.', async () => {
    await collector.stop()
    await expect(send()).rejects.toThrow('the connection failed')
  })

  test('A report that is refused in part is an error.', async () => {
    collector.answer = (response) =>
      response.end('{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"secret"}}')
    await expect(send()).rejects.toThrow('the server refused 3 data points')
  })

  test.each(['', '{}', 'null', 'ok', '{"partialSuccess":{}}', '{"partialSuccess":null}'])(
    'The answer "%s" accepts the report.',
    async (body) => {
      collector.answer = (response) => response.end(body)
      await expect(send()).resolves.toBeUndefined()
    },
  )
})
