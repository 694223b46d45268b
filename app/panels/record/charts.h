// The Record view's charts. UI thread, inside a frame.
#pragma once

#include <imgui.h>

#include "app/desktop/models/record_view.h"

namespace stepladder {

// Each run's final value as a dot, the target as a line, the mean's interval as a band.
void draw_losses(const RecordView& view, ImVec2 size);

// p of the first k runs, and the level.
void draw_p(const RecordView& view, ImVec2 size);

// Minutes against date, as stairs. Returns the index of the record under the mouse, or -1.
int draw_published(const PublishedRecords& published, int highlighted, ImVec2 size);

}  // namespace stepladder
