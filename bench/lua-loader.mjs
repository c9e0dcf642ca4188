// Lets Node import *.lua files as text, as wrangler's Text rule does for the Worker. Preloaded by the commands that run
// the script, so it is plain JavaScript.
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

registerHooks({
  load(url, context, nextLoad) {
    const file = new URL(url) // may have a query
    if (!file.pathname.endsWith('.lua')) return nextLoad(url, context)
    const text = readFileSync(file, 'utf8')
    return {
      format: 'module',
      shortCircuit: true,
      source: `export default ${JSON.stringify(text)}`,
    }
  },
})
