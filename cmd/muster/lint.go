package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/musterhq/muster/internal/domain/ruleset"
)

type lintCommand struct {
	Timeout time.Duration `name:"request-timeout" placeholder:"TIME" default:"5m" help:"Maximum wait of a ticket: RequestTimeoutSeconds of the configuration."`
	Strict  bool          `help:"Exit with status 1 for warnings, too."`
	JSON    bool          `name:"json" help:"Print JSON, for programs."`

	Files []string `arg:"" type:"path" help:"Files with rule sets, JSON."`
}

// lintFinding is one finding as --json writes it.
type lintFinding struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Severity string `json:"severity"` // error or warning
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
}

func (c *lintCommand) Run(stdout io.Writer) error {
	if c.Timeout < time.Second || c.Timeout > 12*time.Hour {
		return fmt.Errorf("--request-timeout: %s, want 1s to 12h", c.Timeout)
	}
	all, wrong := []lintFinding{}, false
	for _, file := range c.Files {
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, f := range ruleset.Lint(string(body), int32(c.Timeout/time.Second)) {
			x := lintFinding{file, f.Line, f.Column, "warning", f.Path, f.Message}
			if f.Wrong {
				x.Severity = "error"
			}
			wrong = wrong || f.Wrong || c.Strict
			all = append(all, x)
		}
	}
	if err := writeFindings(stdout, all, c.JSON); err != nil {
		return err
	}
	if wrong {
		return errors.New("there are findings in the rule sets")
	}
	return nil
}

func writeFindings(w io.Writer, all []lintFinding, asJSON bool) error {
	if asJSON {
		return printJSON(w, map[string]any{"findings": all})
	}
	for _, f := range all {
		path := f.Path
		if path != "" {
			path += ": "
		}
		if _, err := fmt.Fprintf(w, "%s:%d:%d: %s: %s%s\n", f.File, f.Line, f.Column, f.Severity, printable(path), printable(f.Message)); err != nil {
			return err
		}
	}
	return nil
}
