/** The editor of the configuration: colours, marks of errors and findings, completion, and the documentation of fields. */
import {
  autocompletion,
  type CompletionContext,
  type CompletionResult,
  closeBrackets,
  closeBracketsKeymap,
  completionKeymap,
} from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { typescriptLanguage } from '@codemirror/lang-javascript'
import {
  bracketMatching,
  indentOnInput,
  syntaxHighlighting,
  syntaxTree,
} from '@codemirror/language'
import { type Diagnostic, linter, lintGutter, lintKeymap } from '@codemirror/lint'
import { EditorState } from '@codemirror/state'
import {
  drawSelection,
  EditorView,
  highlightActiveLine,
  hoverTooltip,
  keymap,
  lineNumbers,
} from '@codemirror/view'
import { classHighlighter } from '@lezer/highlight'
import { ask } from '../ask.ts'
import type { Mark } from '../engine/answer.ts'
import { type FieldDocs, pathAt } from './path.ts'
import type { Range } from './read-config.ts'

interface EditorOptions {
  parent: HTMLElement
  docs: Promise<FieldDocs>
  /** Called when the text changes. */
  onChange(text: string): void
  /** Called with the marks of the text. */
  onMarks(marks: Mark[]): void
}

export interface Editor {
  text(): string
  setText(text: string): void
  /** Writes over a part of the text. */
  replace(range: Range, text: string): void
  /** Selects a part of the text, and scrolls to it. */
  show(mark: Mark): void
}

export function createEditor({ parent, docs, onChange, onMarks }: EditorOptions): Editor {
  const check = async (view: EditorView): Promise<Diagnostic[]> => {
    const { length } = view.state.doc
    const marks = await ask({ kind: 'check', text: view.state.doc.toString() })
    onMarks(marks)
    return marks.map(({ from, to, severity, message }) => ({
      from: Math.min(from, length),
      to: Math.min(to, length),
      severity,
      message,
    }))
  }
  const view = new EditorView({ parent })
  const stateOf = (doc: string) =>
    EditorState.create({
      doc,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        closeBrackets(),
        highlightActiveLine(),
        EditorView.lineWrapping,
        typescriptLanguage,
        syntaxHighlighting(classHighlighter),
        autocompletion({ override: [(context) => complete(context, docs)] }),
        linter(check, { delay: 250 }),
        lintGutter(),
        hoverTooltip((view, at) => hover(view, at, docs)),
        // Tab moves the focus: the editor must not keep users of a keyboard.
        keymap.of([
          ...closeBracketsKeymap,
          ...defaultKeymap,
          ...historyKeymap,
          ...completionKeymap,
          ...lintKeymap,
        ]),
        EditorView.contentAttributes.of({ 'aria-label': 'Configuration' }),
        EditorView.updateListener.of(({ docChanged, state }) => {
          if (docChanged) onChange(state.doc.toString())
        }),
      ],
    })
  return {
    text: () => view.state.doc.toString(),
    setText(text) {
      if (text !== view.state.doc.toString()) view.setState(stateOf(text))
    },
    replace({ from, to }, text) {
      view.dispatch({ changes: { from, to, insert: text } })
    },
    show({ from, to }) {
      view.dispatch({ selection: { anchor: from, head: to }, scrollIntoView: true })
      view.focus()
    },
  }
}

async function complete(
  context: CompletionContext,
  docs: Promise<FieldDocs>,
): Promise<CompletionResult | null> {
  const word = context.matchBefore(/'?[\w-]*'?/)
  if (!word || (word.from === word.to && !context.explicit)) return null
  const place = pathAt(syntaxTree(context.state), context.state.doc.toString(), context.pos)
  if (!place) return null
  const { path, isValue } = place
  const known = await ask({ kind: 'complete', path })
  if (isValue) {
    if (known.values.length === 0) return null
    return {
      from: word.from,
      options: known.values.map((label) => ({ label, type: 'constant' })),
    }
  }
  const texts = (await docs)[path.join('.')] ?? {}
  return {
    from: word.from,
    options: known.fields.map((label) => ({
      label,
      type: 'property',
      apply: `${label}: `,
      ...(texts[label] && { info: texts[label] }),
    })),
  }
}

async function hover(view: EditorView, at: number, docs: Promise<FieldDocs>) {
  const { from, to, text } = view.state.doc.lineAt(at)
  const word = /[\w$]+/g
  for (let match = word.exec(text); match; match = word.exec(text)) {
    const start = from + match.index
    const end = start + match[0].length
    if (at < start || at > end || end > to) continue
    const place = pathAt(syntaxTree(view.state), view.state.doc.toString(), start)
    if (!place || place.isValue) return null
    const said = (await docs)[place.path.join('.')]?.[match[0]]
    if (!said) return null
    return {
      pos: start,
      end,
      create() {
        const dom = document.createElement('div')
        dom.className = 'field-doc'
        dom.textContent = said
        return { dom }
      },
    }
  }
  return null
}
