/**
 * A strict parser of OpenMetrics 1.0, written from the specification (https://prometheus.io/docs/specs/om/open_metrics_spec/). It shares
 * no code with src/features/observe, and throws at the first line that breaks a rule.
 */

export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

export interface MetricFamily {
  name: string
  type: string
  unit?: string
  help?: string
  samples: Sample[]
}

/** The suffixes that a sample of a type may have. */
const suffixes: Record<string, string[]> = {
  counter: ['_total', '_created'],
  gauge: [''],
  info: ['_info'],
  histogram: ['_bucket', '_count', '_sum', '_created'],
}
const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const NUMBER = /^[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf(?:inity)?)$|^nan$/i

export function parseOpenMetrics(text: string): Map<string, MetricFamily> {
  const families = new Map<string, MetricFamily>()
  const seen = new Set<string>()
  const lines = text.split('\n')
  if (lines.pop() !== '') throw new Error('the text does not end with a line feed')
  if (lines.pop() !== '# EOF') throw new Error('the last line is not # EOF')
  let family: MetricFamily | undefined
  for (const line of lines) {
    const wrong = (why: string): never => {
      throw new Error(`${why}: ${JSON.stringify(line)}`)
    }
    if (line.startsWith('#')) {
      const [, keyword, name = '', rest = ''] =
        /^# (TYPE|UNIT|HELP) (\S+) (.*)$/s.exec(line) ?? wrong('not a descriptor')
      if (!NAME.test(name)) wrong('not a name of a metric')
      if (family?.name !== name) {
        if (families.has(name)) wrong('the lines of a family are not together')
        family = { name, type: 'unknown', samples: [] }
        families.set(name, family)
      }
      if (family.samples.length > 0) wrong('a descriptor after a sample')
      if (keyword === 'TYPE') {
        if (family.type !== 'unknown') wrong('a second type')
        if (!Object.hasOwn(suffixes, rest)) wrong('an unknown type')
        family.type = rest
      } else if (keyword === 'UNIT') {
        if (family.unit !== undefined) wrong('a second unit')
        if (!name.endsWith(`_${rest}`)) wrong('the name does not end with the unit')
        family.unit = rest
      } else {
        if (family.help !== undefined) wrong('a second help text')
        family.help = unescaped(rest) ?? wrong('an invalid escape in a help text')
      }
      continue
    }
    const { name, labels, value } = sampleOf(line) ?? wrong('not a sample')
    if (!family || !suffixes[family.type]?.some((suffix) => name === family?.name + suffix))
      wrong('a sample outside its family')
    const id = JSON.stringify([name, Object.entries(labels).sort()])
    if (seen.has(id)) wrong('two samples have the same labels')
    seen.add(id)
    family!.samples.push({ name, labels, value })
  }
  for (const one of families.values()) check(one)
  return families
}

function sampleOf(line: string): Sample | undefined {
  const head = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/s.exec(line)
  if (!head) return undefined
  const [, name, list, number] = head as unknown as [string, string, string | undefined, string]
  const labels = labelsOf(list)
  if (!NAME.test(name) || !NUMBER.test(number) || !labels) return undefined
  return { name, labels, value: numberOf(number) }
}

/** Reads one label after the other, since a value may contain commas, braces and spaces. */
function labelsOf(list = ''): Record<string, string> | undefined {
  const labels: Record<string, string> = Object.create(null)
  const label = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(,|$)/sy
  while (label.lastIndex < list.length) {
    const [, name, value, end] = label.exec(list) ?? []
    if (name === undefined || name.startsWith('__') || Object.hasOwn(labels, name)) return undefined
    if (end === ',' && label.lastIndex === list.length) return undefined
    labels[name] = unescaped(value!)!
    if (end === '') break
  }
  return labels
}

/** Returns `undefined` if a quote is not escaped, or an escape is unknown. */
function unescaped(text: string): string | undefined {
  if (!/^(?:[^"\\]|\\["\\n])*$/s.test(text)) return undefined
  return text.replace(/\\(.)/gs, (_, one) => (one === 'n' ? '\n' : one))
}

function numberOf(text: string): number {
  const infinite = /^([+-]?)inf/i.exec(text)
  if (infinite) return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  return Number(text)
}

function check({ name, type, samples }: MetricFamily): void {
  const wrong = (why: string): never => {
    throw new Error(`${name}: ${why}`)
  }
  if (type === 'unknown') wrong('no type')
  if (type === 'counter' && name.endsWith('_total')) wrong('_total in the name of a family')
  for (const sample of samples) {
    const { value, labels } = sample
    if (type === 'counter' && !(value >= 0 && value < Number.POSITIVE_INFINITY))
      wrong('a counter is negative or not finite')
    if (type === 'info' && value !== 1) wrong('an info is not 1')
    const isBucket = type === 'histogram' && sample.name.endsWith('_bucket')
    if ('le' in labels !== isBucket) wrong('a label le outside a bucket, or a bucket without it')
  }
  if (type === 'histogram') checkHistogram(samples, wrong)
}

/** Checks a histogram without labels of its own. */
function checkHistogram(samples: Sample[], wrong: (why: string) => never): void {
  const of = (suffix: string) => samples.filter(({ name }) => name.endsWith(suffix))
  const buckets = of('_bucket')
  const [count, sum] = [of('_count'), of('_sum')]
  if (count.length !== 1 || sum.length !== 1) wrong('not one count and one sum')
  if (samples.some(({ labels }) => Object.keys(labels).some((label) => label !== 'le')))
    wrong('this parser reads histograms without labels only')
  const bounds = buckets.map(({ labels }) => labels.le!)
  if (bounds.at(-1) !== '+Inf') wrong('the last bucket is not +Inf')
  if (
    bounds.some((bound) => bound !== '+Inf' && !/^\d+(?:\.\d+(?:e[+-]\d+)?|e[+-]\d+)$/.test(bound))
  )
    wrong('a bound is not a canonical number')
  for (const [index, { labels, value }] of buckets.entries()) {
    if (!Number.isInteger(value)) wrong('a bucket is not a whole number')
    const before = buckets[index - 1]
    if (!before) continue
    if (numberOf(before.labels.le!) >= numberOf(labels.le!)) wrong('the bounds do not ascend')
    if (before.value > value) wrong('the buckets are not cumulative')
  }
  if (count[0]!.value !== buckets.at(-1)!.value) wrong('the count is not that of +Inf')
  if (sum[0]!.value < 0) wrong('the sum is negative')
}
