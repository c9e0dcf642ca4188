/** The series that docs/reference/observability.md lists, and what an expression of PromQL gets wrong about them. */
import { found, pageAt } from './pages.ts'
import { type Expression, parsePromql } from './promql.ts'

const { text } = pageAt('docs/reference/observability.md')

interface ListedSeries {
  name: string
  type: string
  labels: string[]
}

/** The rows of the table of series: name, type, labels. */
export const listed: ListedSeries[] = [
  ...text.matchAll(
    /^\| <a id="(sluice_\w+)"><\/a>`\1` \| (counter|gauge|histogram|info) \|([^|]*)\|/gm,
  ),
].map(([, name, type, labels]) => ({
  name: name!,
  type: type!,
  labels: found(labels!, /`(\w+)`/g),
}))

/** Labels by the name of a series in Prometheus, with the labels that a scrape adds. A histogram is several series. */
const labelsOf = new Map<string, string[]>(
  listed.flatMap(({ name, type, labels }) => {
    const own = [...labels, 'job', 'instance']
    if (type !== 'histogram') return [[name, own]]
    return ['_bucket', '_count', '_sum'].map((suffix) => [
      name + suffix,
      suffix === '_bucket' ? [...own, 'le'] : own,
    ])
  }),
)

const counters = listed.filter(({ type }) => type !== 'gauge' && type !== 'info')
const isCounter = (metric: string) =>
  counters.some(({ name }) => metric === name || metric.startsWith(`${name}_`))

/**
 * The names of an expression that the page does not list.
 * @param records labels by the name of a recording rule
 * @throws {Error} if the expression is not valid PromQL
 */
export function unknownNames(
  source: string,
  records: ReadonlyMap<string, string[]> = new Map(),
): string[] {
  const { selectors, groupings }: Expression = parsePromql(source)
  const known = (metric: string) => labelsOf.get(metric) ?? records.get(metric)
  const inSelectors = selectors.flatMap(({ metric, labels }) => {
    const own = known(metric)
    if (!own) return [metric]
    return labels.filter((label) => !own.includes(label)).map((label) => `${metric}{${label}}`)
  })
  const inGroupings = groupings.flatMap(({ labels, selectors }) =>
    labels.filter((label) =>
      selectors.some(({ metric }) => !(known(metric) ?? [label]).includes(label)),
    ),
  )
  return [...inSelectors, ...inGroupings]
}

/** The counters that an expression reads without `rate` or `increase`, which is never useful. */
export const bareCounters = (source: string): string[] => {
  const ranged = new Set(found(source, /\b(?:rate|increase)\(\s*([a-z_]+)/g))
  return parsePromql(source)
    .selectors.map(({ metric }) => metric)
    .filter((metric) => isCounter(metric) && !ranged.has(metric))
}
