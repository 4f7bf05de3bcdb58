"""How Sphinx makes the site. It has an environment of its own: nothing of Rollway is imported here."""

project = "Rollway"
html_title = "Rollway"
extensions = ["myst_parser"]
root_doc = "index"
templates_path = ["templates"]
exclude_patterns = ["extra"]
html_theme = "furo"
html_extra_path = ["extra"]  # beside the pages that Sphinx is given
html_show_copyright = False
html_show_sphinx = False
html_copy_source = False
html_permalinks = False
pygments_style = "default"
highlight_language = "none"
myst_heading_anchors = 6
# "source:../source/x.py.txt" is a link to a file that is copied as it is: any other one would be a download
myst_url_schemes = {"http": None, "https": None, "source": "{{path}}"}
smartquotes = False  # the words of a command stay as they are typed
html_use_index = False
