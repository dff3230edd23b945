package console

import (
	"net/http"
	"net/url"

	"github.com/musterhq/muster/internal/settings"
)

// settingList lists the settings of this node as muster config prints them.
var settingList = list[settings.Setting]{
	name: "settings", label: "Settings", most: 500, empty: "No setting.",
	columns: []column[settings.Setting]{
		{name: "setting", head: "Setting", value: func(s *settings.Setting) value { return code(s.Name) }},
		{name: "value", head: "Value", value: func(s *settings.Setting) value { return words(s.Value) }},
		{name: "default", head: "Default", value: func(s *settings.Setting) value { return words(s.Default) }},
		{name: "form", head: "Form", value: func(s *settings.Setting) value {
			if s.Form == "" {
				return words("true or false")
			}
			return words(s.Form)
		}},
		{name: "from", head: "From", value: func(s *settings.Setting) value { return words(s.From) }},
		{name: "help", head: "What it does", value: func(s *settings.Setting) value { return words(s.Help) }},
	},
	rows: func(d *Door, r *http.Request, _ url.Values, _ int) ([]settings.Setting, url.Values, error) {
		if err := d.forAdmins(r, "settings", LookAction); err != nil {
			return nil, nil, err
		}
		return d.config.Settings(), nil, nil
	},
}
