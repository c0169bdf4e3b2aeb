package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"strings"
)

// What the comments above a type or field say that struct tags do not: "+listType=map" becomes {"listType": ["map"]}.
type markers map[string][]string

func (m markers) one(name string) string {
	if v := m[name]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (m markers) has(name string) bool { _, ok := m[name]; return ok }

// Markers of the types ("Container") and fields ("Container.Ports") of one package, read from its source.
type packageMarkers map[string]markers

var read = map[string]packageMarkers{}

func markersOf(pkgPath, name string) markers {
	p, ok := read[pkgPath]
	if !ok {
		p = readPackage(pkgPath)
		read[pkgPath] = p
	}
	return p[name]
}

func readPackage(pkgPath string) packageMarkers {
	pkg, err := build.Import(pkgPath, ".", build.FindOnly)
	if err != nil {
		panic(err)
	}
	files, err := parser.ParseDir(token.NewFileSet(), pkg.Dir, nil, parser.ParseComments)
	if err != nil {
		panic(err)
	}
	found := packageMarkers{}
	for _, p := range files {
		for _, f := range p.Files {
			for _, d := range f.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
					readTypes(g, found)
				}
			}
		}
	}
	return found
}

func readTypes(g *ast.GenDecl, found packageMarkers) {
	for _, s := range g.Specs {
		t := s.(*ast.TypeSpec)
		found[t.Name.Name] = readMarkers(g.Doc, t.Doc)
		str, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range str.Fields.List {
			for _, n := range f.Names {
				found[t.Name.Name+"."+n.Name] = readMarkers(f.Doc)
			}
		}
	}
}

func readMarkers(groups ...*ast.CommentGroup) markers {
	m := markers{}
	for _, g := range groups {
		if g == nil {
			continue
		}
		for _, c := range g.List {
			line := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if !strings.HasPrefix(line, "+") {
				continue
			}
			name, value, _ := strings.Cut(line[1:], "=")
			m[name] = append(m[name], value)
		}
	}
	return m
}
