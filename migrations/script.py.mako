"""${message}

A migration must run beside workers of the version before: add first, remove one release later; no table rewrite, no
long lock; a CHECK on a large table is added NOT VALID and validated in a second migration.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
