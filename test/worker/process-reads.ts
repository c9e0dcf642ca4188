/** Counts how often the modules that a Worker imports after this one, and its requests, look at `process`. */
export let processReads = 0

Object.defineProperty(globalThis, 'process', {
  get() {
    processReads++
  },
})
