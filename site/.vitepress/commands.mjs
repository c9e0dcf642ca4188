/**
 * Marks what is no command in a transcript: the prompts, and the output. The copy button leaves out what has the class `vp-copy-ignore`,
 * so that it copies commands that run.
 *
 * @type {import('shiki').ShikiTransformer}
 */
export const markCommands = {
  name: 'mark-commands',
  code(node) {
    if (!/^\$ /m.test(this.source)) return
    const inCommand = commandLines(this.source)
    let line = 0
    let last = false
    node.children = node.children.map((child) => {
      if (child.type !== 'element') return last && inCommand[line] ? child : ignored(child)
      last = inCommand[line++]
      if (!last) return ignored(child)
      return { ...child, children: withoutPrompt(child.children) }
    })
  },
}

const ignored = (child) => ({
  type: 'element',
  tagName: 'span',
  properties: { class: 'vp-copy-ignore' },
  children: [child],
})

/** For each line, whether it is a command or a part of one: the next line belongs to it after a backslash, or within quotes. */
function commandLines(source) {
  let open = false
  return source.split('\n').map((line) => {
    const isCommand = open || line.startsWith('$ ')
    open = isCommand && isOpen(open, line)
    return isCommand
  })
}

let quote = ''
function isOpen(continued, line) {
  if (!continued) quote = ''
  for (const [index, sign] of [...line].entries()) {
    if (quote ? sign === quote : /['"]/.test(sign) && line[index - 1] !== '\\')
      quote = quote ? '' : sign
  }
  return quote !== '' || line.endsWith('\\')
}

/** The first text of a line may be `$ ` alone, or begin with it. */
function withoutPrompt(children) {
  const [first, ...rest] = children
  const text = first?.children?.[0]?.value
  if (!text?.startsWith('$')) return children
  const prompt = text.match(/^\$ ?/)[0]
  const part = (value) => ({ ...first, children: [{ type: 'text', value }] })
  const after = text.slice(prompt.length)
  return [ignored(part(prompt)), ...(after ? [part(after)] : []), ...rest]
}
