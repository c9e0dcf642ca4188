import type { Reporter, TestModule } from 'vitest/node'

/** Ends a run with one plain line: `N passed, N failed`. */
export class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    let passed = 0
    let failed = errors.length
    for (const module of modules) {
      const states = [...module.children.allTests()].map((test) => test.result().state)
      passed += states.filter((state) => state === 'passed').length
      const failures = states.filter((state) => state === 'failed').length
      // A file or a hook may fail without any test of it.
      failed += failures > 0 ? failures : Number(module.state() === 'failed')
    }
    // After the summary, which other reporters print on the same event.
    process.on('exit', () => console.log(`${passed} passed, ${failed} failed`))
  }
}
