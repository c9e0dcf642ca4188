import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one plain line: `N passed, N failed`. */
export class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    let passed = 0
    let failed = errors.length
    for (const module of modules) {
      if (module.state() === 'failed' && [...module.children.allTests()].length === 0) failed += 1
      for (const test of module.children.allTests()) {
        if (test.result().state === 'passed') passed += 1
        if (test.result().state === 'failed') failed += 1
      }
    }
    // After the summary, which other reporters print on the same event.
    process.on('exit', () => console.log(`${passed} passed, ${failed} failed`))
  }
}
