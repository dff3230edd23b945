package simulate

import "html/template"

// Figure is a line of the table of figures: a label, which is indented if it details the one above, and the figure of each report.
type Figure struct {
	Label string
	Cells []string
}

// Figures returns the figures of reports about the same arrivals, without their names.
func Figures(reports ...*Report) []Figure { return lines(reports)[1:] }

// Plot is a chart for a page. The picture and the keys use the classes r0 and r1 for the reports, and dashed; the page defines their colors.
type Plot struct {
	Title, Unit string
	Picture     template.HTML
	Keys        []Key
}

// Key explains a color.
type Key struct{ Name, Class string }

// Plots returns the charts of reports about the same arrivals.
func Plots(reports ...*Report) (all []Plot) {
	for _, c := range charts(reports) {
		all = append(all, c.plot())
	}
	return all
}

func (c *chart) plot() Plot {
	p := Plot{Title: c.title, Unit: c.unit, Picture: c.svg()}
	for i := range c.series {
		p.Keys = append(p.Keys, Key{c.series[i].name, c.series[i].class()})
	}
	return p
}

// Bars returns a bar chart with one value for each place.
func Bars(title, unit, name string, places []string, values []float64) Plot {
	c := chart{title: title, unit: unit, places: places, bars: true, series: []series{{name: name, values: values}}}
	return c.plot()
}
