package console

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/internal/domain"
	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/identity"
	"github.com/musterhq/muster/internal/keyring"
)

var keyActions = []*action{{
	name: "create-key", text: "Create access key", done: "The access key is valid", section: "keys", may: identity.MayAdminister, service: "muster:Service.CreateKey",
	prepare: func(_ *Door, _ *http.Request, f *form) error {
		f.Title, f.Effect, f.Grave = "Create an access key", "A program or a person signs in with the key and its secret. The next page shows the secret once.", true
		role := &field{Name: "role", Label: "Role", Kind: oneOf, Required: true, Value: access.ReadOnly.String(), Choices: []pick{
			{access.ReadOnly.String(), "readonly: looks at everything"}, {access.Client.String(), "client: calls of players' games"},
			{access.Backend.String(), "backend: game servers and the studio's backend"}, {access.Admin.String(), "admin: changes everything"},
		}}
		f.Fields = []*field{{Name: "name", Label: "Name", Hint: "who or what it is for", Required: true, Most: access.NameMax}, role}
		return nil
	},
	command: func(f *form) string {
		return terminal("muster keys create", option{"--role", f.value("role"), "ROLE"}, option{"--name", f.value("name"), "NAME"}, option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		role, err := access.ParseRole(f.value("role"))
		if err != nil {
			return "", err
		}
		d.changing.Lock()
		defer d.changing.Unlock()
		if err := d.keyNameIsFree(ctx, f.value("name")); err != nil {
			return "", err
		}
		key, err := d.config.Keyring.Create(ctx, by.changes(), keyring.New{Role: role, Name: f.value("name")})
		if err == nil {
			f.Made = &key
		}
		return "keys", err
	},
}, {
	name: "limit-key", text: "Limit", done: "The limits of the access key have changed.", section: "keys", object: true, may: identity.MayAdminister, service: "muster:Service.LimitKey",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareKey(r, f, func(k *access.Key) error {
			if !k.Works() {
				return domain.Refuse(domain.Invalid, "Access key %s does not work any more.", k.ID)
			}
			f.Title, f.Grave = "Limit access key "+cmp.Or(k.Name, k.ID), true
			f.Effect = "Key " + k.ID + " of the role " + k.Role.String() + " works until this time and from these networks alone, at every node within a second. Other networks close what it has opened."
			until := ""
			if k.Expires != 0 {
				until = k.Expires.Std().UTC().Format(time.RFC3339)
			}
			f.Now = "expires: " + cmp.Or(until, "never") + "; from: " + cmp.Or(strings.Join(k.Sources, ", "), "everywhere")
			f.Fields = []*field{
				{Name: "expires", Label: "Expires", Hint: "such as 2027-01-31T00:00:00Z, or 90d from now; empty: never", Value: until, Most: 40},
				{Name: "sources", Label: "Works from", Hint: "networks such as 192.0.2.0/24, one on a line; empty: everywhere", Kind: textLines, Value: strings.Join(k.Sources, "\n"), Most: 4096},
				{Name: "force", Label: "Even if it locks out this session, or leaves no administrator's key without limits", Kind: onOff},
			}
			return nil
		})
	},
	command: func(f *form) string {
		options := []option{{"--expires", cmp.Or(f.value("expires"), "never"), ""}, {"--source", cmp.Or(strings.Join(strings.Fields(f.value("sources")), ","), "anywhere"), ""}}
		command := "muster keys limit " + shellWord(f.ID)
		if f.value("force") != "" {
			command += " --force"
		}
		return terminal(command, append(options, option{"--reason", f.value(reasonField), ""})...)
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		x := keyring.Limits{ID: f.ID, Sources: strings.Fields(f.value("sources")), Force: f.value("force") != ""}
		x.Anywhere, x.Forever = len(x.Sources) == 0, f.value("expires") == ""
		if !x.Forever {
			var ok bool
			if x.Expires, ok = expiryOf(f.value("expires"), d.engine.Now()); !ok {
				f.field("expires").refuse("a time such as 2027-01-31T00:00:00Z, or days such as 90d")
				return "", nil
			}
		}
		_, err := d.config.Keyring.Limit(ctx, by.changes(), x)
		return "keys", err
	},
}, {
	name: "revoke-key", text: "Revoke", done: "The access key is revoked.", section: "keys", object: true, may: identity.MayAdminister, service: "muster:Service.RevokeKey",
	prepare: func(d *Door, r *http.Request, f *form) error {
		return d.prepareKey(r, f, func(k *access.Key) error {
			if !k.Works() {
				return domain.Refuse(domain.Invalid, "Access key %s is revoked already.", k.ID)
			}
			name := cmp.Or(strings.TrimSpace(k.Name), k.ID) // as a form sends it
			f.Title, f.Confirm = "Revoke access key "+name, name
			f.Effect = "Every door refuses key " + k.ID + " of the role " + k.Role.String() + " at once, and its connections and its sign-ins here end. It cannot be undone."
			return nil
		})
	},
	command: func(f *form) string {
		return terminal("muster keys revoke "+shellWord(f.ID), option{"--reason", f.value(reasonField), ""})
	},
	do: func(ctx context.Context, d *Door, by *actor, f *form) (string, error) {
		_, err := d.config.Keyring.Revoke(ctx, by.changes(), f.ID, false)
		return "keys", err
	},
}}

// prepareKey finds the access key of a form.
func (d *Door) prepareKey(r *http.Request, f *form, fill func(*access.Key) error) error {
	return d.engine.Read(r.Context(), func(v *cell.View) error {
		for _, k := range v.AccessKeys() {
			if k.ID == f.ID {
				return fill(&k)
			}
		}
		return domain.Refuse(domain.NotFound, "There is no access key %.100q.", f.ID)
	})
}

// expiryOf parses a time, or a number of days from now.
func expiryOf(text string, now time.Time) (time.Time, bool) {
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, true
	}
	days, ok := strings.CutSuffix(text, "d")
	n, err := strconv.Atoi(days)
	if !ok || err != nil || n < 1 || n > 36_525 {
		return time.Time{}, false
	}
	return now.Add(time.Duration(n) * 24 * time.Hour).UTC().Truncate(time.Second), true
}

// changes returns the actor in the form recorded with access keys.
func (by *actor) changes() access.Actor {
	return access.Actor{Principal: by.name(), Address: by.Address, Door: "console"}
}

// keyNameIsFree refuses the name of a valid key. The service allows it, but here it usually means that a form was sent twice.
func (d *Door) keyNameIsFree(ctx context.Context, name string) error {
	return d.engine.Read(ctx, func(v *cell.View) error {
		for _, k := range v.AccessKeys() {
			if k.Name == name && k.Works() {
				return domain.Refuse(domain.Conflict, "Name is %.200q, which access key %s has; want another one. Was the form sent twice? Then revoke that key: its secret is not shown again.", name, k.ID)
			}
		}
		return nil
	})
}
