import type { Reporter, TestModule } from 'vitest/node'

/** Prints one plain line at the end of a run: `N passed, N failed`. */
export class Tally implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    let passed = 0
    let failed = errors.length
    for (const module of modules) {
      const states = [...module.children.allTests()].map((test) => test.result().state)
      passed += states.filter((state) => state === 'passed').length
      const failures = states.filter((state) => state === 'failed').length
      // A file or a hook can fail without a failed test.
      failed += failures > 0 ? failures : Number(module.state() === 'failed')
    }
    // At exit, so that the line comes after the summary of the other reporters.
    process.on('exit', () => console.log(`${passed} passed, ${failed} failed`))
  }
}
