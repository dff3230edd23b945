package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/musterhq/muster/internal/domain/access"
	"github.com/musterhq/muster/internal/domain/cell"
	"github.com/musterhq/muster/internal/keyring"
)

// keyPath returns the path of an access key's row.
func keyPath(id string) string { return "keys#" + escaped(id) }

// keyList lists all access keys, including revoked ones, without their secrets.
var keyList = list[keyring.Document]{
	name: "access-keys", label: "Access keys", most: 200, empty: "There is no access key.",
	columns: []column[keyring.Document]{
		{name: "id", head: "Access key", value: func(k *keyring.Document) value { return code(k.ID) }},
		{name: "name", head: "Name", value: func(k *keyring.Document) value { return words(k.Name) }},
		{name: "role", head: "Role", value: func(k *keyring.Document) value { return words(k.Role.String()) }},
		{name: "state", head: "State", value: func(k *keyring.Document) value {
			switch {
			case k.Works() && k.Successor != "":
				return state("being replaced")
			case k.Works():
				return state("active")
			case k.Expired():
				return state("expired")
			}
			return state("revoked")
		}},
		{name: "created", head: "Created", value: func(k *keyring.Document) value { return moment(k.Created) }},
		{name: "last-used", head: "Last used", value: func(k *keyring.Document) value {
			if k.LastUse == nil {
				return words("")
			}
			return moment(k.LastUse.At)
		}},
		{name: "last-use", head: "For", value: func(k *keyring.Document) value {
			if k.LastUse == nil {
				return words("")
			}
			return words(k.LastUse.Operation + " from " + k.LastUse.Address)
		}},
		{name: "expires", head: "Expires", value: func(k *keyring.Document) value { return moment(k.Expires) }},
		{name: "sources", head: "Works from", value: func(k *keyring.Document) value { return words(strings.Join(k.Sources, ", ")) }},
		{name: "successor", head: "Replaced by", hidden: true, value: func(k *keyring.Document) value { return code(k.Successor) }},
		{name: "created-by", head: "Created by", value: func(k *keyring.Document) value { return words(k.CreatedBy.String()) }},
		{name: "revoked", head: "Revoked", value: func(k *keyring.Document) value { return moment(k.Revoked) }},
		{name: "revoked-by", head: "Revoked by", value: func(k *keyring.Document) value { return words(k.RevokedBy.String()) }},
		{name: "account", head: "Account", hidden: true, value: func(k *keyring.Document) value { return words(k.Account) }},
	},
	id: func(k *keyring.Document) string { return k.ID },
	offers: func(k *keyring.Document) []offered {
		if !k.Works() {
			return nil
		}
		return []offered{{action: "limit-key", id: k.ID}, {action: "revoke-key", id: k.ID}}
	},
	rows: func(d *Door, r *http.Request, query url.Values, most int) (all []keyring.Document, next url.Values, err error) {
		if err := d.forAdmins(r, "access keys", "muster:Service.ListKeys"); err != nil {
			return nil, nil, err
		}
		var keys []access.Key
		err = d.engine.Read(r.Context(), func(v *cell.View) error { keys = v.AccessKeys(); return nil })
		from := place(query)
		keys = slices.DeleteFunc(keys, func(k access.Key) bool {
			return k.Created < from.Created || k.Created == from.Created && k.ID <= from.ID
		})
		keys, next = cut(keys, most, func(k *access.Key) url.Values { return since(k.Created, k.ID) })
		return keyring.Documents(keys), next, err
	},
}
