import { LogError } from './log.ts'
import { type Property, properties } from './parser.ts'

const ALIASES: Record<string, Property> = { uri: 'target', path: 'target', useragent: 'userAgent' }

/**
 * Checks the properties of `--map`.
 * @throws LogError
 */
export function readMap(map: Record<string, string> = {}): Map<Property, string> {
  return new Map(Object.entries(map).map(([name, field]) => [propertyOf(name, field), field]))
}

function propertyOf(name: string, field: string): Property {
  if (/^header:[\w!#$%&'*+.^`|~-]+$/.test(name)) return name.toLowerCase() as Property
  const property = ALIASES[name] ?? properties.find((one) => one === name)
  if (property && field !== '') return property
  throw new LogError(
    'map',
    `--map ${name}=${field}: write PROPERTY=FIELD. The properties are ${properties.join(', ')} and header:NAME.`,
  )
}
