// Package ruleset is the language in which designers say what a good match is: FlexMatch rule sets, JSON with players'
// attributes, teams, rules over property expressions, and expansions that relax them with time.
//
// Parse reads a rule set, or reports all that is wrong with it, each problem with the path of its place. What it gives
// is compiled: attributes are columns, expressions are trees over them, and every wait of an expansion has its Level,
// the rule set as it stands from then on. A Level judges candidates; it is the reference that says what is right. A
// matcher that wants to be fast recognises the rules' shapes and keeps its own counts, and must agree with it.
//
// Source: docs/spec/flexmatch.md#rule-set. Where AWS is silent see B090 to B106.
package ruleset
