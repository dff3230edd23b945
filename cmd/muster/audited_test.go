package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The effect of a command on the audit log.
const (
	reads    = "changes nothing"
	apart    = "changes nothing of an installation"
	starts   = "starts a program"
	recorded = "has an entry, and takes a reason"
)

// commandsByEntry has every command of the binary. One that changes an installation has an entry in the audit log: by the door that it asks, or by recordLater while
// no service runs.
var commandsByEntry = map[string]string{
	"serve": starts, "agent": starts, "demo": starts, "bench": apart, "bench-bare": apart, "bench-attack": apart, "arena-server": starts, "arena-client": starts,
	"config show": reads, "health": reads, "completion": reads, "man": apart, "config check": reads, "doctor": reads, "explain": reads, "logs": reads, "version": reads, "events": reads, "top": reads, "lint": reads, "simulate": apart, "ca": reads, "webhook-key": reads, "audit list": reads, "audit verify": reads,
	"keys list": reads, "keys create": recorded, "keys rotate": recorded, "keys limit": recorded, "keys revoke": recorded, "keys revoke-credentials": recorded, "aws-profile": "makes an access key, which has an entry", "console": "makes a link, which has an entry",
	"login": "signs a person in, which has an entry", "logout": "ends a sign-in, which has an entry", "credentials": "issues temporary credentials, which has an entry",
	"policies create": recorded, "policies update": recorded, "policies delete": recorded, "policies attach": recorded, "policies detach": recorded, "policies list": reads, "policies show": reads, "access explain": reads, "access actions": reads,
	"secret rotate": recorded, "secret list": reads, "secret retire": recorded,
	"secret-key create": apart, "secret-key change": recorded, "secret-key remove": recorded,
	"cluster join-token": recorded, "cluster status": reads, "cluster promote": recorded, "cluster demote": recorded, "cluster remove": recorded, "cluster locate": recorded, "cluster hand-over": recorded,
	"cluster replace-authority": recorded, "cluster leave": recorded, "cluster recover": recorded,
	"reload": recorded, "support-bundle": recorded, "backup make": recorded, "backup list": reads, "export": recorded, "restore": recorded, "archive check": reads, "archive repair": recorded,
	"drain": recorded, "rollout start": recorded, "rollout status": reads, "build push": recorded, "build list": reads,
	"people list": reads, "people sessions": reads, "people add": recorded, "people enrol": recorded, "people groups": recorded, "people remove": recorded, "people remove-passkey": recorded, "people end-session": recorded,
	"hosts list": reads, "hosts join-token": recorded, "hosts revoke-token": recorded, "hosts revoke": recorded, "hosts drain": recorded, "computes rotate-token": recorded,
}

// TestCommandsHaveEntries: every command is on the list above, and those that change something take the reason for the audit log.
func TestCommandsHaveEntries(t *testing.T) {
	parser, err := kong.New(&commandLine{}, kong.Name("muster"), kong.Vars{"data": "", "listen": ""})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, leaf := range parser.Model.Leaves(false) {
		name := strings.TrimPrefix(leaf.FullPath(), "muster ")
		found[name] = true
		what, listed := commandsByEntry[name]
		if !listed {
			t.Errorf("muster %s: the list of commands does not say whether it has an entry in the audit log", name)
		}
		takes := false
		for _, group := range leaf.AllFlags(false) {
			for _, flag := range group {
				takes = takes || flag.Name == "reason"
			}
		}
		if takes != (what == recorded) && listed {
			t.Errorf("muster %s: takes a reason: %t; but it %s", name, takes, what)
		}
	}
	for name := range commandsByEntry {
		if !found[name] {
			t.Errorf("muster %s is on the list and is no command", name)
		}
	}
}
