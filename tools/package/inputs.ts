/**
 * The options of the package as plain interfaces. In the source they are the inputs of schemas (`Input` in core/config/schema/shapes.ts);
 * a user needs neither the schemas nor what they parse to.
 */
import { parseSync } from 'rolldown/utils'

interface Node {
  type: string
  start: number
  end: number
  // biome-ignore lint/suspicious/noExplicitAny: the nodes of ESTree for TypeScript
  [field: string]: any
}

/** Replaces `Input<…>` in a declaration file by the fields themselves, with their documentation. */
export function withPlainInputs(code: string): string {
  if (!code.includes('Input<')) return code
  const { program } = parseSync('file.d.ts', code, { lang: 'dts', astType: 'ts' })
  const statements = (program.body as Node[]).map((one) => one.declaration ?? one) as Node[]
  /** The object types of the constants with the fields of a schema, and of the functions that make them. */
  const fields = new Map<string, Node>()
  for (const { declarations = [] } of statements) {
    for (const { id } of declarations as Node[]) {
      const type = id.typeAnnotation?.typeAnnotation
      fields.set(id.name, type?.returnType?.typeAnnotation ?? type)
    }
  }

  const text = ({ start, end }: Pick<Node, 'start' | 'end'>) => code.slice(start, end)
  const nameOf = ({ typeName, qualifier }: Node): string => {
    const name = typeName ?? qualifier
    return name?.right?.name ?? name?.name ?? ''
  }
  const isInput = (node: Node) =>
    /^TS(TypeReference|ImportType)$/.test(node.type) && nameOf(node) === 'Input'
  const argumentsOf = ({ typeArguments }: Node): Node[] => typeArguments?.params ?? []

  /** The object type of the argument of `Input`: itself, `typeof fields` or `ReturnType<typeof fields>`. */
  function objectOf(node: Node): Node {
    if (node.type === 'TSTypeLiteral') return node
    if (node.type === 'TSTypeQuery') return fields.get(node.exprName.name)!
    return objectOf(argumentsOf(node)[0]!)
  }

  /** The members of an object of schemas, each with its documentation. */
  function membersOf({ members, start }: Node): string {
    let before = start + 1
    return (members as Node[])
      .map((member) => {
        const schema = member.typeAnnotation.typeAnnotation as Node
        const documentation = code.slice(before, member.start)
        before = member.end
        const mark = nameOf(schema) === 'OptionalSchema' ? '?' : ''
        return `${documentation}${text(member.key)}${mark}: ${inputOf(schema)};`
      })
      .join('')
  }

  /** A type without `Input`. */
  function plain(node: Node): string {
    if (isInput(node)) return `{${membersOf(objectOf(argumentsOf(node)[0]!))}\n}`
    const inner: Node[] = []
    const collect = (value: unknown) => {
      if (typeof value !== 'object' || value === null) return
      const child = value as Node
      if (child !== node && typeof child.type === 'string' && isInput(child)) inner.push(child)
      else for (const part of Object.values(child)) collect(part)
    }
    collect(node)
    let [result, at] = ['', node.start]
    for (const one of inner) {
      result += code.slice(at, one.start) + plain(one)
      at = one.end
    }
    return result + code.slice(at, node.end)
  }

  /** The type of what a schema accepts. */
  function inputOf(schema: Node): string {
    const [first, second] = argumentsOf(schema)
    switch (nameOf(schema)) {
      case 'GenericSchema':
      case 'CustomSchema':
      case 'LiteralSchema':
        return first!.type === 'TSFunctionType' ? `(${plain(first!)})` : plain(first!)
      case 'OptionalSchema':
        return `${inputOf(first!)} | undefined`
      case 'NullableSchema':
        return `${inputOf(first!)} | null`
      case 'LazySchema':
        return inputOf(first!)
      case 'SchemaWithPipe':
        return inputOf(first!.typeAnnotation.elementTypes[0])
      case 'ArraySchema':
        return `(${inputOf(first!)})[]`
      case 'RecordSchema':
        return `{ [name: string]: ${inputOf(second!)} }`
      case 'PicklistSchema':
        return first!.type === 'TSTupleType'
          ? first!.elementTypes.map(text).join(' | ')
          : `(${plain(first!)})[number]`
      case 'UnionSchema':
        return first!.elementTypes.map(inputOf).join(' | ')
      case 'StringSchema':
        return 'string'
      case 'NumberSchema':
        return 'number'
      case 'BooleanSchema':
        return 'boolean'
      default:
        throw new Error(`No input of ${text(schema)} is known: tools/package/inputs.ts`)
    }
  }

  let [result, at] = ['', 0]
  for (const node of statements) {
    if (node.type !== 'TSInterfaceDeclaration') continue
    const bases = node.extends as Node[]
    const input = bases.find(({ expression }) => expression.name === 'Input')
    if (!input) continue
    const others = bases.filter(({ expression }) => !/^(Input|Named)$/.test(expression.name))
    const head = code.slice(at, bases[0]!.start).replace(/ extends $/, '')
    const { start, end } = node.body as Node
    const own = code.slice(start + 1, end - 1).trimEnd()
    result += `${head}${others.length > 0 ? ` extends ${others.map(text).join(', ')}` : ''} {`
    result += `${membersOf(objectOf(argumentsOf(input)[0]!))}${own}\n}`
    at = end
  }
  return result + code.slice(at)
}
