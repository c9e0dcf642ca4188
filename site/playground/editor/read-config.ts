/**
 * Reads a configuration from its text. Nothing of the text runs: it may come from an address that someone else has made. So literals,
 * constants and the features of the playground are read, and everything else is a problem.
 */
import { typescriptLanguage } from '@codemirror/lang-javascript'
import type { SyntaxNode } from '@lezer/common'
import { ConfigError } from '../../../src/core/base/errors.ts'
import type { Finding } from '../../../src/core/config/findings.ts'
import { problemsOf } from '../../../src/lint/lint.ts'
import { features } from './features.ts'

/** A part of the text. */
export interface Range {
  from: number
  to: number
}

/** What cannot be read, and where. */
export interface TextProblem extends Range {
  message: string
}

/** The call of a limit by name and key, for a text that makes `limits()`. */
export interface Call {
  /** The name of the limit. */
  name: string
  /** Units, if the call says them. */
  cost?: number
}

export interface ReadConfig {
  /** The configuration, or the terms of `limits()`. Undefined if the text has a problem. */
  value: unknown
  /** Present if the text makes `limits()`. */
  call?: Call
  /** The places of values, by paths as findings write them: `policies[2].match`. */
  places: ReadonlyMap<string, Range>
  problems: TextProblem[]
}

/** Calls whose first argument is a configuration. */
const MAKERS = ['defineConfig', 'rateLimiter', 'createSluice', 'createGateway', 'sluice', 'limits']
const MAX_TEXT = 64 * 1024

class Unreadable extends Error {
  readonly node: SyntaxNode
  constructor(node: SyntaxNode, message: string) {
    super(message)
    this.node = node
  }
}

export function readConfig(text: string): ReadConfig {
  const places = new Map<string, Range>()
  const problems: TextProblem[] = []
  const fail = ({ from, to }: Range, message: string): ReadConfig => {
    problems.push({ from, to: Math.max(to, from + 1), message })
    return { value: undefined, places, problems }
  }
  if (text.length > MAX_TEXT) {
    return fail({ from: 0, to: text.length }, `A configuration has at most ${MAX_TEXT} characters.`)
  }
  const { topNode } = typescriptLanguage.parser.parse(text)
  const slip = firstError(topNode)
  if (slip) return fail(slip, 'This is not the syntax of TypeScript.')
  const node = configIn(topNode, text)
  if (!node) {
    return fail(
      { from: 0, to: text.length },
      'Write the configuration as an argument: defineConfig({ policies: [ … ] }).',
    )
  }
  try {
    const reader = new Reader(text, constantsIn(topNode, text), places)
    const value = reader.read(node, '')
    const isLimits = node.parent?.parent && calleeOf(node.parent.parent, text) === 'limits'
    return {
      value,
      places,
      problems,
      ...(isLimits && { call: callIn(topNode, text, reader, value) }),
    }
  } catch (error) {
    if (error instanceof Unreadable) return fail(error.node, error.message)
    throw error
  }
}

/** The range of a finding: of its path, or of the nearest part around it that the text has. */
export function placeOf({ path }: Pick<Finding, 'path'>, { places }: ReadConfig): Range {
  let known = path
  while (known && !places.has(known)) known = known.replace(/(\.[^.[\]]*|\[\d+\]|^[^.[\]]*)$/, '')
  return places.get(known) ?? places.get('') ?? { from: 0, to: 0 }
}

function firstError(top: SyntaxNode): Range | undefined {
  let found: Range | undefined
  top.cursor().iterate((node) => {
    if (node.type.isError) found ??= { from: node.from, to: node.to }
    return !found
  })
  return found
}

/** The node of the configuration: the argument of a maker, or the default export. */
function configIn(top: SyntaxNode, text: string): SyntaxNode | undefined {
  let found: SyntaxNode | undefined
  let exported: SyntaxNode | undefined
  top.cursor().iterate(({ node }) => {
    if (found) return false
    if (node.name === 'CallExpression' && MAKERS.includes(calleeOf(node, text))) {
      found = argumentsOf(node)[0]
    }
    if (node.name === 'ExportDeclaration' && node.getChild('default')) {
      exported = node.getChild('default')!.nextSibling ?? undefined
    }
    return !found
  })
  return found ?? exported
}

/** The first call such as `quota.limit('invites', user.id, { cost: 2 })`. Its key is a client of the traffic. Defaults to the first limit. */
function callIn(top: SyntaxNode, text: string, reader: Reader, terms: unknown): Call {
  let call: SyntaxNode | undefined
  top.cursor().iterate(({ node }) => {
    if (node.name === 'CallExpression' && /\.limit$/.test(calleeOf(node, text))) call ??= node
    return !call
  })
  const [name, , options] = call ? argumentsOf(call) : []
  const said = name ? reader.read(name, 'call.name') : Object.keys(Object(terms))[0]
  if (!Object.hasOwn(Object(terms), `${said}`)) {
    throw new Unreadable(
      name ?? top,
      `limits() has no ${said}. Write the name of one of its limits.`,
    )
  }
  const { cost } = Object(options && reader.read(options, 'call.options'))
  return { name: `${said}`, ...(typeof cost === 'number' && { cost }) }
}

const textOf = (node: SyntaxNode, text: string) => text.slice(node.from, node.to)
const calleeOf = (call: SyntaxNode, text: string) => textOf(call.firstChild!, text)

/** The children of a list, without its brackets and commas. */
function itemsOf(node: SyntaxNode): SyntaxNode[] {
  const items: SyntaxNode[] = []
  for (let child = node.firstChild; child; child = child.nextSibling) {
    if (!/^[[\](){},;]$/.test(child.name) && !/Comment$/.test(child.name)) items.push(child)
  }
  return items
}

const argumentsOf = (call: SyntaxNode) => itemsOf(call.getChild('ArgList')!)

/** The values of `const` declarations. */
function constantsIn(top: SyntaxNode, text: string): Map<string, SyntaxNode> {
  const constants = new Map<string, SyntaxNode>()
  for (const declaration of top.getChildren('VariableDeclaration')) {
    for (const name of declaration.getChildren('VariableDefinition')) {
      let value = name.nextSibling
      while (value && value.name !== 'Equals' && value.name !== ',') value = value.nextSibling
      if (value?.name === 'Equals' && value.nextSibling) {
        constants.set(textOf(name, text), value.nextSibling)
      }
    }
  }
  return constants
}

class Reader {
  readonly #text: string
  readonly #constants: ReadonlyMap<string, SyntaxNode>
  readonly #places: Map<string, Range>
  /** The constants that are being read: one that needs itself has no value. */
  readonly #open = new Set<string>()

  constructor(
    text: string,
    constants: ReadonlyMap<string, SyntaxNode>,
    places: Map<string, Range>,
  ) {
    this.#text = text
    this.#constants = constants
    this.#places = places
  }

  read(node: SyntaxNode, path: string): unknown {
    if (!this.#places.has(path)) this.#places.set(path, { from: node.from, to: node.to })
    const text = textOf(node, this.#text)
    switch (node.name) {
      case 'ObjectExpression':
        return this.#object(node, path)
      case 'ArrayExpression':
        return this.#list(node, path)
      case 'String':
        return stringIn(node, text)
      case 'TemplateString':
        if (node.getChild('Interpolation')) break
        return stringIn(node, text)
      case 'Number':
        return Number(text.replaceAll('_', ''))
      case 'BooleanLiteral':
        return text === 'true'
      case 'null':
        return null
      case 'VariableName':
        return this.#constant(node, text, path)
      case 'ParenthesizedExpression':
        return this.read(itemsOf(node)[0]!, path)
      case 'UnaryExpression':
        return this.#negative(node, path)
      case 'BinaryExpression':
        return this.#binary(node, path)
      case 'CallExpression':
        return this.#call(node, path)
      case 'ArrowFunction':
      case 'FunctionExpression':
        throw new Unreadable(
          node,
          "The playground runs no functions. Write a key part such as 'ip' or 'header:x-user' instead.",
        )
    }
    throw new Unreadable(
      node,
      'The playground reads values only: texts, numbers, lists, objects, and constants of them.',
    )
  }

  #object(node: SyntaxNode, path: string): object {
    const made = {}
    const set = (name: string, value: unknown) =>
      // A field with the name __proto__ is a field.
      Object.defineProperty(made, name, {
        value,
        enumerable: true,
        writable: true,
        configurable: true,
      })
    for (const property of itemsOf(node)) {
      const [first, ...rest] = itemsOf(property)
      if (first?.name === 'Spread') {
        const spread = this.read(rest[0]!, `${path}...`)
        for (const [name, value] of Object.entries(spread ?? {})) set(name, value)
        continue
      }
      const value = property.getChild(':')?.nextSibling
      if (!first || !/^(PropertyDefinition|String|Number)$/.test(first.name)) {
        throw new Unreadable(property, 'Write the name of the field as a text.')
      }
      const written = textOf(first, this.#text)
      const name = first.name === 'String' ? stringIn(first, written) : written
      if (!value && property.getChild('Block')) {
        throw new Unreadable(property, 'The playground runs no functions.')
      }
      const at = path ? `${path}.${name}` : name
      this.#places.set(at, { from: property.from, to: property.to })
      set(name, value ? this.read(value, at) : this.#constant(first, written, at))
    }
    return made
  }

  #list(node: SyntaxNode, path: string): unknown[] {
    const list: unknown[] = []
    const items = itemsOf(node)
    items.forEach((item, index) => {
      if (item.name === 'Spread') return
      const isSpread = items[index - 1]?.name === 'Spread'
      const value = this.read(item, isSpread ? `${path}...` : `${path}[${list.length}]`)
      if (!isSpread) list.push(value)
      else if (Array.isArray(value)) list.push(...value)
      else throw new Unreadable(item, 'Only a list can be spread into a list.')
    })
    return list
  }

  #constant(node: SyntaxNode, name: string, path: string): unknown {
    if (name === 'undefined') return undefined
    if (name === 'Infinity') return Number.POSITIVE_INFINITY
    const value = this.#constants.get(name)
    if (!value || this.#open.has(name)) {
      throw new Unreadable(node, `The text has no constant ${name} with a value.`)
    }
    this.#open.add(name)
    try {
      return this.read(value, path)
    } finally {
      this.#open.delete(name)
    }
  }

  #negative(node: SyntaxNode, path: string): number {
    const [sign, value] = itemsOf(node)
    const number = this.read(value!, path)
    const text = textOf(sign!, this.#text)
    if (typeof number !== 'number' || !/^[-+]$/.test(text)) {
      throw new Unreadable(node, 'Only a number can have a sign.')
    }
    return text === '-' ? -number : number
  }

  /** Arithmetic such as `60 * 1000`, and the types `as const` and `satisfies`. */
  #binary(node: SyntaxNode, path: string): unknown {
    const [left, operator, right] = itemsOf(node)
    const value = this.read(left!, path)
    if (/^(as|satisfies)$/.test(operator!.name)) return value
    const other = this.read(right!, path)
    const sign = textOf(operator!, this.#text)
    if (typeof value === 'number' && typeof other === 'number') {
      if (sign === '*') return value * other
      if (sign === '+') return value + other
      if (sign === '-') return value - other
      if (sign === '/') return value / other
      if (sign === '**') return value ** other
    }
    throw new Unreadable(node, 'The playground computes only + - * / ** of numbers.')
  }

  #call(node: SyntaxNode, path: string): unknown {
    const name = calleeOf(node, this.#text)
    const make = Object.hasOwn(features, name) ? features[name] : undefined
    if (!make) {
      throw new Unreadable(
        node,
        `The playground has no ${name}(). It has ${Object.keys(features)
          .map((one) => `${one}()`)
          .join(', ')}. Leave it out here; sluice check reads the whole file.`,
      )
    }
    const given = argumentsOf(node).map((argument) => this.read(argument, `${path}()`))
    try {
      return make(...given)
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error
      const said = problemsOf(error).map(({ path, message, hint }) => `${path}: ${message} ${hint}`)
      throw new Unreadable(node, said.join('\n'))
    }
  }
}

/** The value of a string or a template without parts. */
function stringIn(node: SyntaxNode, written: string): string {
  const inner = written.slice(1, -1)
  if (!inner.includes('\\')) return inner
  try {
    return JSON.parse(`"${inner.replace(/\\(['`$])/g, '$1').replace(/(?<!\\)"/g, '\\"')}"`)
  } catch {
    throw new Unreadable(node, 'The playground does not read this escape.')
  }
}
